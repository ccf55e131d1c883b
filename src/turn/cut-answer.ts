import type { Logger } from "pino";
import { runWithin } from "../concurrency/deadlines.ts";
import type { History } from "../history/history.ts";
import type { Button } from "../port/sink.ts";
import { type Closing, createReplyDrafts } from "../reply/drafts.ts";
import type { SinkOf } from "../reply/paced-sink.ts";
import { readAnswer, toAnswerText } from "./editions.ts";
import { describeEnding } from "./endings.ts";
import type { TurnRecord } from "./record.ts";

/** Longest that the rest of an answer waits for this. */
const TIMEOUT_MS = 15_000;
const NO_CLOSING: Closing = { note: "", buttons: [] };
const REFUSED = describeEnding({ error: "refused" }, { model: "", now: 0 });

export interface CutAnswerDeps {
  history: Pick<History, "read">;
  sinkOf: SinkOf;
  log: Logger;
}

/** Removes note and button from the end of an answer that is continued elsewhere. Best effort; never rejects. */
export async function takeClosingOff(deps: CutAnswerDeps, record: TurnRecord, signal: AbortSignal): Promise<void> {
  await rewriteClosing(deps, record, NO_CLOSING, signal);
}

/** Puts another sentence, without buttons, in the place of what an answer asked people at its end. */
export async function showNote(
  deps: CutAnswerDeps,
  record: TurnRecord,
  note: string,
  signal: AbortSignal,
): Promise<void> {
  await rewriteClosing(deps, record, { note, buttons: [] }, signal);
}

/** Shows the end of an answer that its place refused when it ended. Resolves to whether it takes it now; never rejects. */
export async function showRefusal(deps: CutAnswerDeps, record: TurnRecord, signal: AbortSignal): Promise<boolean> {
  const retry: Button = { action: "retry", turnId: record.id, label: "Retry" };
  return rewriteClosing(deps, record, { note: REFUSED.note, buttons: [retry] }, signal);
}

/** Rewrites an ended answer's messages with another end. Best effort; resolves to whether it was done. */
export async function rewriteClosing(
  { history, sinkOf, log }: CutAnswerDeps,
  record: TurnRecord,
  closing: Closing,
  signal: AbortSignal,
): Promise<boolean> {
  const { id: turnId, reply, posted } = record;
  // Its length then does not tell which part of the text stands in which message.
  if (record.sealed !== undefined) return false;
  try {
    const sink = sinkOf(reply);
    const answer = await readAnswer(history, record);
    // A text that was not kept stands on the platform alone.
    if (answer === undefined) return false;
    const text = createReplyDrafts({ turnId, limits: sink.limits });
    text.append(toAnswerText(answer.messages));
    text.end({ ...closing, isPartial: answer.partial === true });
    // The file of an answer that has ended is there, or is found missing below.
    text.noteFile();
    const drafts = text.render();
    // The closing may have pushed the end into one more message; the file of a long answer stays.
    const surplus = posted.slice(drafts.length, text.file() === undefined ? undefined : -1);
    const isAsPosted = drafts.length <= posted.length && surplus.length <= 1;
    if (!isAsPosted) return false;
    await runWithin(
      TIMEOUT_MS,
      async (bound) => {
        // All of them: where thoughts, code or cards were shown beside the text, it was cut elsewhere. The first one goes
        // first and takes in what the next one is to lose, so that no part is missing in between.
        for (const [index, draft] of drafts.entries()) {
          const id = posted[index];
          if (id !== undefined) await sink.edit(id, draft, bound);
        }
        for (const id of surplus) await sink.remove(id, bound);
      },
      signal,
    );
    return true;
  } catch (error) {
    log.warn({ err: error, turnId }, "the end of an answer could not be written again");
    return false;
  }
}
