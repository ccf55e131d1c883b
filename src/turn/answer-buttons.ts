import { toEditionId } from "../port/ids.ts";
import type { Button, ReplySink } from "../port/sink.ts";
import type { TurnRecord } from "./record.ts";

/** The buttons under an answer that is whole, where the platform shows any. */
export function toAnswerButtons(
  { id: turnId, edition }: Pick<TurnRecord, "id" | "edition">,
  { supportsSecondThoughts }: Pick<ReplySink, "supportsSecondThoughts">,
): Button[] {
  if (supportsSecondThoughts !== true) return [];
  return [
    { action: "regenerate", turnId: toEditionId(turnId, edition), label: "Regenerate" },
    ...toExplainButton({ id: turnId }, { supportsSecondThoughts }),
    { action: "good", turnId, label: "Good answer" },
    { action: "bad", turnId, label: "Bad answer" },
  ];
}

/** The button that tells what the model was given, where the platform shows such. */
export function toExplainButton(
  { id: turnId }: Pick<TurnRecord, "id">,
  { supportsSecondThoughts }: Pick<ReplySink, "supportsSecondThoughts">,
): Button[] {
  return supportsSecondThoughts === true ? [{ action: "explain", turnId, label: "What did you see?" }] : [];
}
