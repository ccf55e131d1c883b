import type { Logger } from "pino";
import { mayBeTakenOver } from "../concurrency/fence.ts";
import { PATIENT_PAUSES_MS, retry } from "../concurrency/retry.ts";
import { fitWindow, toMessages, withoutRefused, withTalk } from "../conversation/conversation.ts";
import type { ChatMessage } from "../gateway/chunks.ts";
import type { Continuation, History } from "../history/history.ts";
import type { HistoryEntry } from "../history/record.ts";
import type { Files } from "../media/files.ts";
import type { AttachmentRef, MessageEvent } from "../port/events.ts";
import { isStoreOutage } from "../store/outage.ts";
import type { Branch, ReadChannelTalk } from "./channel-talk.ts";
import { readAnswer } from "./editions.ts";
import { toEntry } from "./entries.ts";
import type { TurnRecord } from "./record.ts";
import { showFiles } from "./shown-files.ts";
import { type Given, toGiven } from "./sight.ts";
import { estimateTokens } from "./token-counts.ts";

const STORE_AGAIN_MS = 1_000;
const READ_AGAIN_MS = 200;
/** Messages read beyond the window's own number: words to others count by their tokens alone. */
const EARLIER_ENTRIES = 500;
/** More than that for each token of the window never fits into it. */
const CHARS_PER_TOKEN = 8;

export interface Context {
  messages: ChatMessage[];
  /** Sentences for the person, to stand under the answer. */
  notices: string[];
  /** The entries it was made of. */
  given: Given;
  /** Files of the messages that the model sees, whether or not they are shown to it; oldest first. */
  files: AttachmentRef[];
  /** The oldest entry of the history that is in `messages`, when there are older ones. */
  oldestShownId: string | undefined;
  /** The turn's answer so far, when it is written once more; absent where that was not read. */
  written?: ChatMessage[];
}

/**
 * Builds the request: the branch that ends with the question, and the talk around it, inside the window. Without the
 * history it has only the messages at hand, and says so; without those it rejects.
 */
export type ReadContext = (
  record: TurnRecord,
  messages: readonly MessageEvent[],
  told: { systemPrompt: string; channelMessages: number; showsFiles?: boolean },
  signal: AbortSignal,
) => Promise<Context>;

export interface ContextDeps {
  history: Pick<History, "find" | "read" | "readFirst">;
  readChannelTalk: ReadChannelTalk;
  maxEntries: number;
  maxTokens: number;
  files: Pick<Files, "load">;
  log: Logger;
}

export function createReadContext(deps: ContextDeps): ReadContext {
  const { history, readChannelTalk, maxEntries, maxTokens, files, log } = deps;
  const limits = { maxEntries, maxTokens };
  const most = { maxEntries: maxEntries + EARLIER_ENTRIES, maxChars: maxTokens * CHARS_PER_TOKEN };

  async function readBranch(record: TurnRecord) {
    const { id, conversationId, messageIds } = record;
    // An answer that is written once more must not see itself, nor what was said after it.
    const own = await history.find(id);
    const asked = messageIds.at(-1);
    const end = own !== undefined ? { beforeId: own.entryId } : asked !== undefined && { upToId: asked };
    const branch = await history.read(conversationId, { ...most, ...end });
    if (own !== undefined) {
      const answer = await readAnswer(history, { conversationId, id: own.entryId });
      return { ...branch, written: answer?.messages ?? [] };
    }
    if (branch.entries.length > 0) return branch;
    // The question could not be stored.
    return history.read(conversationId, most);
  }

  /** Adds questions that could not be stored. An entry said to others does not count as the question. */
  function withMessages(entries: readonly HistoryEntry[], messages: readonly MessageEvent[]): HistoryEntry[] {
    const asked = new Set(entries.flatMap(({ id, isEarlier }) => (isEarlier === true ? [] : id)));
    if (messages.every(({ messageId }) => asked.has(messageId))) return [...entries];
    const own = new Set(messages.map(({ messageId }) => messageId));
    return [...entries.filter(({ id }) => !own.has(id)), ...messages.map(toEntry)];
  }

  async function readEntries(record: TurnRecord, messages: readonly MessageEvent[], signal: AbortSignal) {
    try {
      // A process that stood still, or waited for its turn on a busy machine, finds its first look too old.
      const look = () => readBranch(record);
      const branch = await retry(look, { pausesMs: [READ_AGAIN_MS], mayPass: isStoreOutage }, signal);
      const entries = withMessages(branch.entries, messages);
      const first = branch.hasOlder ? await history.readFirst(record.conversationId) : entries[0];
      return { written: [], ...branch, entries, first, notices: [] as string[] };
    } catch (error) {
      signal.throwIfAborted();
      // A question that is nowhere at hand cannot be answered.
      if (messages.length === 0) throw error;
      log.error({ err: error, turnId: record.id }, "the history could not be read");
      const notice = "_My memory is out of reach right now: this answer knows nothing of what was said before._";
      return { entries: messages.map(toEntry), first: undefined, hasOlder: false, notices: [notice], written: [] };
    }
  }

  return async (record, messages, { systemPrompt, channelMessages, showsFiles = true }, signal) => {
    const branch = await readEntries(record, messages, signal);
    const { hasOlder, notices, written } = branch;
    const entries = withRoot(withoutRefused(branch.entries), branch);
    signal.throwIfAborted();
    const talk = await readChannelTalk(record, branch, channelMessages, signal);
    const whole = withoutQuoted(withTalk(entries, talk));
    const owner = `${record.reply.platform}:${record.author.id}`;
    const said = fitWindow(whole, limits, estimateTokens);
    const room = toRoomForFiles(maxTokens, said.tokens);
    const shown = await showFiles(said.kept, { files, maxTokens: room, owner, showsFiles }, signal);
    const { kept } = fitWindow(whole, { ...limits, filesOf: shown.tokensOf }, estimateTokens);
    // Talk is in no history.
    const around = new Set(talk.map(({ id }) => id));
    const stored = kept.filter(({ id }) => !around.has(id));
    const dropped = withoutQuoted(entries).length - stored.length;
    const oldest = stored.find(({ isRoot }) => isRoot !== true);
    const fromChannel = kept.length - stored.length;
    const isCut = dropped > 0 || hasOlder;
    const leftOut = shown.noticesOf(record.messageIds);
    if (isCut) leftOut.push("Earlier messages of this conversation were left out.");
    if (leftOut.length > 0) notices.push(`_${leftOut.join(" ")}_`);
    return {
      given: toGiven(stored, stored.filter(shown.isShown), {
        dropped,
        hasOlder,
        ...(fromChannel > 0 && { fromChannel }),
      }),
      messages: toMessages(systemPrompt, kept, shown.partsOf),
      notices,
      files: showsFiles ? kept.flatMap(({ attachments }) => attachments ?? []) : [],
      oldestShownId: isCut ? oldest?.id : undefined,
      written,
    };
  };
}

/** Files get what people's words leave of the window, and never less than a quarter of it, nor more than three. */
function toRoomForFiles(maxTokens: number, saidTokens: number): number {
  return Math.floor(Math.min(0.75 * maxTokens, Math.max(0.25 * maxTokens, maxTokens - saidTokens)));
}

/** Puts the thread's first message at the front, however old it is. */
function withRoot(entries: readonly HistoryEntry[], { first }: Branch): HistoryEntry[] {
  const isMissing = first?.isRoot === true && entries.every(({ id }) => id !== first.id);
  return isMissing ? [first, ...entries] : [...entries];
}

/** Drops messages that a question quotes, so that they are not shown twice. */
function withoutQuoted(entries: readonly HistoryEntry[]): HistoryEntry[] {
  const quoted = new Set(entries.map(({ quotes }) => quotes));
  return entries.filter(({ id, isEarlier }) => isEarlier !== true || !quoted.has(id));
}

/**
 * Stores the questions in order, up to the first that the store refuses: later ones would stand before it. The first
 * continues the branch it replies to. Resolves to whether all are stored; never rejects.
 */
export async function storeQuestions(
  history: Pick<History, "append">,
  messages: readonly MessageEvent[],
  log: Logger,
): Promise<boolean> {
  let areStored = true;
  for (const { conversationId, entry, after } of toContinuations(messages)) {
    try {
      await history.append(conversationId, entry, [], after);
    } catch (error) {
      areStored = false;
      log.error({ err: error, conversationId }, "a message could not be stored in the history");
      if (isStoreOutage(error)) break;
    }
  }
  return areStored;
}

/**
 * Stores questions late, before their answer; a shared store is waited for until `signal` aborts. Resolves to whether
 * they are stored. Never rejects.
 */
export async function storeQuestionsLate(
  history: Pick<History, "append">,
  messages: readonly MessageEvent[],
  log: Logger,
  signal: AbortSignal,
): Promise<boolean> {
  const pausesMs = mayBeTakenOver() ? againAndAgain() : PATIENT_PAUSES_MS;
  try {
    await retry(() => appendQuestions(history, messages), { pausesMs, mayPass: isStoreOutage }, signal);
    return true;
  } catch (error) {
    log.error({ err: error }, "messages could not be stored in the history after they were answered either");
    return false;
  }
}

/** Stores all questions, or rejects; storing them once more changes nothing. */
export async function appendQuestions(
  history: Pick<History, "append">,
  messages: readonly MessageEvent[],
): Promise<void> {
  for (const { conversationId, entry, after } of toContinuations(messages)) {
    await history.append(conversationId, entry, [], after);
  }
}

function* againAndAgain(): Generator<number> {
  for (;;) yield STORE_AGAIN_MS;
}

/** Messages as `History.append` takes them: the first continues the branch it replies to. */
export function toContinuations(messages: readonly MessageEvent[]): Array<Continuation & { conversationId: string }> {
  const isBranch = messages[0]?.inReplyTo !== undefined;
  return messages.map((message, index) => {
    const { conversationId, inReplyTo } = message;
    const after = index === 0 || !isBranch ? inReplyTo : messages[index - 1]?.messageId;
    return { conversationId, entry: toEntry(message), after };
  });
}

/** Messages without those that were deleted before they came; all of them where nobody can say. Never rejects. */
export async function withoutDeleted(
  history: Pick<History, "deletedOf">,
  messages: readonly MessageEvent[],
  log: Logger,
): Promise<readonly MessageEvent[]> {
  try {
    const deleted = await history.deletedOf(messages.map(({ messageId }) => messageId));
    return messages.filter(({ messageId }) => !deleted.includes(messageId));
  } catch (error) {
    log.warn({ err: error }, "the deletions that came before a message could not be read");
    return messages;
  }
}

/** True when every message that a turn answers was deleted. */
export async function isQuestionGone(history: Pick<History, "find">, { messageIds }: TurnRecord): Promise<boolean> {
  const places = await Promise.all(messageIds.map((id) => history.find(id)));
  return places.every((place) => place === undefined);
}
