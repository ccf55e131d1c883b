import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { runWithin, waitAtMost } from "../concurrency/deadlines.ts";
import { type ChatMessage, textOf, withoutAttached } from "../gateway/chunks.ts";
import type { History } from "../history/history.ts";
import type { FormerAnswer, HistoryEntry } from "../history/record.ts";
import type { Adapter } from "../port/adapter.ts";
import { toNonce } from "../port/ids.ts";
import { NO_RIGHT, type Right } from "../port/right.ts";
import type { Button } from "../port/sink.ts";
import { type Closing, createReplyDrafts } from "../reply/drafts.ts";
import { PROBE } from "../reply/messages.ts";
import { callPlatform, isRefusal } from "../reply/platform-call.ts";
import { toScheduleButtons } from "../schedules/wording.ts";
import type { Services } from "../services/services.ts";
import type { TurnRecord } from "./record.ts";
import type { TurnServices } from "./records.ts";

/** The number of stored answers to one question. Each can be as long as a conversation. */
const MAX_EDITIONS = 5;

/** Rejects if the store is unavailable. */
export async function readAnswer(
  history: Pick<History, "read">,
  { conversationId, id }: Pick<TurnRecord, "conversationId" | "id">,
): Promise<HistoryEntry | undefined> {
  const { entries } = await history.read(conversationId, { upToId: id, maxEntries: 1 });
  return entries.find((entry) => entry.id === id);
}

export function editionOf({ edition = 1 }: HistoryEntry): number {
  return edition;
}

/** Oldest first. */
export function editionsOf(entry: HistoryEntry): FormerAnswer[] {
  const { at, messages, sources, former = [] } = entry;
  return [...former, { edition: editionOf(entry), at, messages, ...(sources !== undefined && { sources }) }];
}

/** The answers to keep next to a new one. A rewritten answer keeps the same ones. */
export function formerOf(before: HistoryEntry | undefined, edition: number): FormerAnswer[] {
  if (before === undefined) return [];
  const former = editionOf(before) === edition ? (before.former ?? []) : editionsOf(before);
  return former.slice(1 - MAX_EDITIONS);
}

/** The texts before and after a tool call are separate paragraphs, as people saw them. */
export function toAnswerText(messages: readonly ChatMessage[]): string {
  const texts = messages.map((message) => (message.role === "assistant" ? textOf(message) : ""));
  return texts.filter(Boolean).join("\n\n");
}

/** `number` counts the endings of the turn. */
export function toAnswerEntry(
  { id, edition, author, reply }: TurnRecord,
  {
    messages,
    sources,
    isRefused,
    number,
    former,
    ...answer
  }: Pick<HistoryEntry, "messages" | "partial"> & {
    sources: NonNullable<HistoryEntry["sources"]>;
    isRefused: boolean;
    number: number;
    former: NonNullable<HistoryEntry["former"]>;
  },
): HistoryEntry {
  return {
    id,
    at: Date.now(),
    askedBy: { platform: reply.platform, id: author.id },
    messages: messages.map(withoutAttached),
    ...answer,
    ...(sources.length > 0 && { sources }),
    ...(isRefused && { isRefused }),
    ...(edition > 1 && { edition }),
    ...(number > 1 && { end: number }),
    ...(former.length > 0 && { former }),
  };
}

export function toButtonsOfRun({ scheduled }: Pick<TurnRecord, "scheduled">): Button[] {
  return scheduled?.recurs === true ? toScheduleButtons({ id: scheduled.id, state: "active" }) : [];
}

const TIMEOUT_MS = 15_000;

/** Rewrites the messages of an ended answer with another ending. Resolves to true if it succeeded. Never rejects. */
export async function rewriteClosing(
  { history, sinkOf, log }: Services,
  record: TurnRecord,
  closing: Closing,
  signal: AbortSignal,
): Promise<boolean> {
  const { id: turnId, reply, posted } = record;
  // Otherwise it is unknown which message has which part of the text.
  if (record.sealed !== undefined) return false;
  try {
    const sink = sinkOf(reply);
    const answer = await readAnswer(history, record);
    // Only the platform has the text.
    if (answer === undefined) return false;
    const text = createReplyDrafts({ turnId, limits: sink.limits });
    text.append(toAnswerText(answer.messages));
    const buttons = [...closing.buttons, ...toButtonsOfRun(record)];
    text.end({ ...closing, buttons, isPartial: answer.partial === true, sources: answer.sources ?? [] });
    // If the file does not exist, `surplus` shows it.
    text.noteFile();
    const drafts = text.render();
    // The closing can move the end of the text to another message. The file of a long answer stays.
    const surplus = posted.slice(drafts.length, text.file() === undefined ? undefined : -1);
    const isAsPosted = drafts.length <= posted.length && surplus.length <= 1;
    if (!isAsPosted) return false;
    await runWithin(
      TIMEOUT_MS,
      async (bound) => {
        // Thoughts, code or cards in the shown text can have moved every break between messages. Rewrites forwards, so
        // that no part is missing in between: each message gets the text that the next one loses.
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

const LOOK_MS = 1_000;

/** With the pause, more time than writing an answer takes. */
const MAX_LOOKS = 900;

/** Only for a process that shuts down. */
const STRAYS_MS = 1_000;

interface RemovalDeps {
  adapterOf(platform: string): Pick<Adapter, "sink">;
  right: Right;
  log: Logger;
}

/** Removes a turn's messages and erases the turn. Rejects if the caller must retry. */
export async function takeBack(
  deps: RemovalDeps & Pick<TurnServices, "records" | "history">,
  record: TurnRecord,
): Promise<void> {
  const { history, records } = deps;
  if (record.attempts === 0 && record.posted.length === 0) return;
  // Must come first: when the platform has forgotten the nonce, repeating the post makes another message.
  await findPosted(deps, record);
  await records.save(record);
  await removePosted(deps, record);
  await history.remove(record.id);
  // No erasure finds the calls of a turn without a history entry.
  await records.eraseCalls(record.id);
  for (const field of ["shownText", "cited", "waits", "feedback", "reasons", "trace"] as const) delete record[field];
  await records.save({ ...record, posted: [], phase: "final", canRetry: false });
}

interface StraysDeps extends Omit<RemovalDeps, "right"> {
  load(id: string): Promise<Pick<TurnRecord, "posted" | "removed" | "phase"> | undefined>;
}

/**
 * Removes messages in an answer that this process posted and that the process that took over does not know. When a
 * process freezes, it can send a call after it wakes up, when the other process has already looked for the message. The
 * other process can still find a message until it has posted the same number, or until the answer has ended. So this
 * waits for that, in the background if it takes longer than `STRAYS_MS`. Needs no right (`NO_RIGHT`), because this
 * process has lost its right, and no other process can name these messages. Never rejects; ignores failures.
 */
export function removeStrays(deps: StraysDeps, record: TurnRecord, lookMs: number = LOOK_MS): Promise<void> {
  return waitAtMost(lookForStrays(deps, record, lookMs), STRAYS_MS);
}

async function lookForStrays(deps: StraysDeps, record: TurnRecord, lookMs: number): Promise<void> {
  let left = record.posted.map((id, index) => ({ id, number: index + record.removed }));
  for (let looks = 0; looks < MAX_LOOKS; looks++) {
    try {
      const stored = await deps.load(record.id);
      left = left.filter(({ id }) => stored?.posted.includes(id) !== true);
      const count = stored === undefined ? 0 : stored.posted.length + stored.removed;
      const strays = left.filter(({ number }) => stored?.phase === "final" || number < count);
      await removePosted(
        { ...deps, right: NO_RIGHT },
        { ...record, posted: strays.map(({ id }) => id), isPosting: false },
      );
      left = left.filter((one) => !strays.includes(one));
      if (left.length === 0) return;
    } catch (err) {
      deps.log.debug({ err, turnId: record.id }, "a leftover message could not be looked up or removed");
    }
    await sleep(lookMs, undefined, { ref: false });
  }
}

/** Starts with the last message. Rejects if the caller must retry. */
export async function removePosted(deps: RemovalDeps, record: TurnRecord): Promise<void> {
  const { adapterOf, right, log } = deps;
  await findPosted(deps, record);
  const sink = adapterOf(record.reply.platform).sink(record.reply, right);
  for (const id of record.posted.toReversed()) {
    try {
      await callPlatform(right, (signal) => sink.remove(id, signal));
    } catch (error) {
      if (!isRefusal(error)) throw error;
      log.warn({ err: error, turnId: record.id }, "a message of a cancelled answer could not be removed");
    }
  }
}

/** Repeats an uncertain post to learn its id. */
async function findPosted({ adapterOf, right }: RemovalDeps, record: TurnRecord): Promise<void> {
  if (!record.isPosting) return;
  const sink = adapterOf(record.reply.platform).sink(record.reply, right);
  try {
    const posted = await callPlatform(right, (signal) => sink.post(PROBE, toNonce(record), signal));
    record.posted.push(posted.id);
  } catch (error) {
    if (!isRefusal(error)) throw error;
  }
  record.isPosting = false;
}
