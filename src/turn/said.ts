import type { AnswerOptions } from "../settings/answer-options.ts";
import { type TurnLedger, toShown } from "../tools/ledger.ts";
import type { TurnRecord } from "./record.ts";

/**
 * Notes the text of the model, and nothing else that people read, for the process that takes the answer over: to go on
 * with it or, if it `isWhole`, to do no more than show it.
 */
export function noteSaid(
  record: TurnRecord,
  said: string,
  isWhole: boolean,
  { format, thinking }: AnswerOptions,
): void {
  forgetSaid(record);
  if (format !== "json" && thinking !== "shown") Object.assign(record, { said, isSaidWhole: isWhole });
}

export function forgetSaid(record: TurnRecord): void {
  delete record.said;
  delete record.isSaidWhole;
}

/** The text that an earlier process has shown after that of the rounds in the ledger. */
export function readBegun({ said = "" }: TurnRecord, ledger: TurnLedger): string | undefined {
  const before = ledger.rounds.map((round) => toShown(round) && `${toShown(round)}\n\n`).join("");
  return said.startsWith(before) && said.length > before.length ? said.slice(before.length) : undefined;
}
