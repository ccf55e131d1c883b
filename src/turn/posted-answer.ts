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

/** How many answers to one question to store, including the newest. Each can be as long as a conversation. */
const MAX_EDITIONS = 5;

/** Reads a turn's answer from the history. Rejects if the store is unavailable. */
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

/** All stored answers to a question, oldest first. */
export function editionsOf(entry: HistoryEntry): FormerAnswer[] {
  const { at, messages, sources, former = [] } = entry;
  return [...former, { edition: editionOf(entry), at, messages, ...(sources !== undefined && { sources }) }];
}

/** The earlier answers to store with a new one. If the new answer has the same edition, it replaces the last one. */
export function formerOf(before: HistoryEntry | undefined, edition: number): FormerAnswer[] {
  if (before === undefined) return [];
  const former = editionOf(before) === edition ? (before.former ?? []) : editionsOf(before);
  return former.slice(1 - MAX_EDITIONS);
}

/** Joins the texts of an answer. Texts before and after a tool call are separate paragraphs, as people saw them. */
export function toAnswerText(messages: readonly ChatMessage[]): string {
  const texts = messages.map((message) => (message.role === "assistant" ? textOf(message) : ""));
  return texts.filter(Boolean).join("\n\n");
}

/** Converts an answer to a history entry. `number` counts how often the turn has ended. */
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

/** Rewrites the messages of an ended answer with another ending. Resolves to true if that succeeded. Never rejects. */
export async function rewriteClosing(
  { history, sinkOf, log }: Services,
  record: TurnRecord,
  closing: Closing,
  signal: AbortSignal,
): Promise<boolean> {
  const { id: turnId, reply, posted } = record;
  // If messages were sealed, it is unknown which part of the text each of them has.
  if (record.sealed !== undefined) return false;
  try {
    const sink = sinkOf(reply);
    const answer = await readAnswer(history, record);
    // If the history lacks the answer, its text is only on the platform.
    if (answer === undefined) return false;
    const text = createReplyDrafts({ turnId, limits: sink.limits });
    text.append(toAnswerText(answer.messages));
    const buttons = [...closing.buttons, ...toButtonsOfRun(record)];
    text.end({ ...closing, buttons, isPartial: answer.partial === true, sources: answer.sources ?? [] });
    // Assumes that a long answer has its file. If the file is missing, the number of messages shows that.
    text.noteFile();
    const drafts = text.render();
    // The new ending can move the end of the text to an earlier message. The file of a long answer stays.
    const surplus = posted.slice(drafts.length, text.file() === undefined ? undefined : -1);
    const isAsPosted = drafts.length <= posted.length && surplus.length <= 1;
    if (!isAsPosted) return false;
    await runWithin(
      TIMEOUT_MS,
      async (bound) => {
        // Thoughts, code or cards were shown with the text, so this text can break between messages at other positions.
        // Rewrites all messages from the first to the last, so that no part is ever missing: each message gets the text
        // that the next one loses.
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

/** How often to look for a leftover message. With the pause in between, this takes longer than writing an answer. */
const MAX_LOOKS = 900;

/** How long an attempt's end waits for the removal of leftover messages, which then continues in the background. */
const STRAYS_MS = 1_000;

interface RemovalDeps {
  adapterOf(platform: string): Pick<Adapter, "sink">;
  right: Right;
  log: Logger;
}

/** Removes the messages of an answer and erases the turn. Rejects if the caller must retry. */
export async function takeBack(
  deps: RemovalDeps & Pick<TurnServices, "records" | "history">,
  record: TurnRecord,
): Promise<void> {
  const { history, records } = deps;
  if (record.attempts === 0 && record.posted.length === 0) return;
  // Looks for an uncertain post before anything else. Once the platform has forgotten the nonce, repeating the post
  // would create another message.
  await findPosted(deps, record);
  await records.save(record);
  await removePosted(deps, record);
  await history.remove(record.id);
  // With its history entry gone, a later erasure could not find this turn's tool calls, so they are erased now.
  await records.eraseCalls(record.id);
  for (const field of ["shownText", "cited", "waits", "feedback", "reasons", "trace"] as const) delete record[field];
  await records.save({ ...record, posted: [], phase: "final", canRetry: false });
}

interface StraysDeps extends Omit<RemovalDeps, "right"> {
  load(id: string): Promise<Pick<TurnRecord, "posted" | "removed" | "phase"> | undefined>;
}

/**
 * Removes messages of an answer that this process posted and that the process that took over does not know. Such a
 * message appears if this process freezes, wakes up and sends a call after the other process has looked for messages.
 * The other process can still find the message until it has posted as many messages itself, or until the answer has
 * ended. So this function first waits for that, in the background if it takes longer than `STRAYS_MS`. It needs no
 * right (`NO_RIGHT`): this process has lost its right, and no other process knows the ids of these messages. Never
 * rejects, and ignores failures.
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

/** Removes the messages of a reply, starting with the last one. Rejects if the caller must retry. */
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

/** Finds the message of an uncertain post by repeating the post with the same nonce. */
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
