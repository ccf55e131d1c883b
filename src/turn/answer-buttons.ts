import type { HistoryEntry } from "../history/record.ts";
import { toEditionId } from "../port/ids.ts";
import type { Button, ReplySink } from "../port/sink.ts";
import type { TurnLedger } from "../tools/ledger.ts";
import { formerOf, toEditionButtons } from "./editions.ts";
import type { Ending } from "./endings.ts";
import type { TurnRecord } from "./record.ts";
import { toRerunButton, toWaitingButtons } from "./tool-approval.ts";

export interface AnswerShown {
  readonly record: Pick<TurnRecord, "id" | "edition">;
  readonly sink: Pick<ReplySink, "supportsSecondThoughts">;
  /** The answer that stood there before, if any. */
  readonly before: HistoryEntry | undefined;
  readonly ledger: Pick<TurnLedger, "waiting" | "uncertain">;
}

/** The buttons under an answer, however it ended. */
export function toEndingButtons({ record, sink, before, ledger }: AnswerShown, ending: Ending): Button[] {
  const { id: turnId, edition } = record;
  const waiting = ledger.waiting();
  // Another answer shown in its place would take the question to people away.
  if (ending.outcome === "waiting" && waiting !== undefined) return toWaitingButtons(turnId, waiting);
  const numbers = [...formerOf(before, edition).map((one) => one.edition), edition];
  const steps = toEditionButtons(turnId, numbers, edition);
  const others = [...steps, ...toExplainButton(record, sink)];
  const retry: Button[] = ending.retry ? [{ action: "retry", turnId, label: "Retry" }] : [];
  const uncertain = ledger.uncertain();
  if (uncertain.length > 0) return [toRerunButton(turnId, uncertain), ...retry, ...others];
  if (canContinue(ending)) return [{ action: "continue", turnId, label: "Continue" }, ...others];
  if (ending.retry) return [...retry, ...others];
  return ending.outcome === "complete" ? [...steps, ...toAnswerButtons(record, sink)] : others;
}

/** True for an answer that the greatest length cut and that has something to go on with. */
export function canContinue({ outcome, retry }: Ending): boolean {
  return outcome === "length" && retry;
}

/** The buttons under an answer that is whole, where the platform shows any. */
export function toAnswerButtons(
  { id: turnId, edition }: Pick<TurnRecord, "id" | "edition">,
  { supportsSecondThoughts }: Pick<ReplySink, "supportsSecondThoughts">,
): Button[] {
  if (supportsSecondThoughts !== true) return [];
  const editionId = toEditionId(turnId, edition);
  return [
    { action: "regenerate", turnId: editionId, label: "Regenerate" },
    ...toExplainButton({ id: turnId }, { supportsSecondThoughts }),
    { action: "good", turnId: editionId, label: "Good answer" },
    { action: "bad", turnId: editionId, label: "Bad answer" },
  ];
}

/** The button that tells what the model was given, where the platform shows such. */
export function toExplainButton(
  { id: turnId }: Pick<TurnRecord, "id">,
  { supportsSecondThoughts }: Pick<ReplySink, "supportsSecondThoughts">,
): Button[] {
  return supportsSecondThoughts === true ? [{ action: "explain", turnId, label: "What did you see?" }] : [];
}
