import { hash } from "node:crypto";
import type { Logger } from "pino";
import { estimateTokenCount } from "tokenx";
import { BoundedMap } from "../concurrency/bounded-map.ts";
import { runWithin } from "../concurrency/deadlines.ts";
import { retry } from "../concurrency/retry.ts";
import { fitWindow, toMessages, withoutRefused, withTalk } from "../conversation/conversation.ts";
import type { ChatMessage, ContentPart } from "../gateway/chunks.ts";
import type { History } from "../history/history.ts";
import type { HistoryEntry } from "../history/record.ts";
import { nameFiles, type ShownFiles, toContentParts } from "../media/content-parts.ts";
import type { Files } from "../media/files.ts";
import type { Adapter } from "../port/adapter.ts";
import type { AttachmentRef, EarlierMessage, MessageEvent, ReplyAddress } from "../port/events.ts";
import { isStoreOutage } from "../store/outage.ts";
import { truncate } from "../text/truncate.ts";
import { readAnswer } from "./posted-answer.ts";
import { toEntry } from "./questions.ts";
import type { TurnRecord } from "./record.ts";
import type { ContextSummary } from "./trace.ts";

const READ_AGAIN_MS = 200;

/**
 * How many history entries to read in addition to the window's limit, because that limit does not count messages to
 * other people. Only the window's tokens limit those.
 */
const EARLIER_ENTRIES = 500;

/** How many characters to read for each token of the window. More text never fits into the window. */
const CHARS_PER_TOKEN = 8;

export interface Context {
  messages: ChatMessage[];
  notices: string[];
  given: ContextSummary;
  /**
   * The files in the messages that the model sees, oldest first. Includes files whose content the model does not see.
   */
  files: AttachmentRef[];
  /** The id of the oldest history entry in `messages`. Undefined if the history has no older entries. */
  oldestShownId: string | undefined;
  /** The turn's earlier answer, if the turn restarts. Absent if the history has not been read yet. */
  written?: Written;
}

type Written = Pick<HistoryEntry, "messages" | "sources">;

const UNWRITTEN: Written = { messages: [] };

/**
 * Builds the model's request: the branch of the conversation that ends with the question, and the channel's messages
 * around the question, limited to the window. If the history is unavailable, the request has only the given questions,
 * and a notice says so. Rejects if there are none.
 */
export type ReadContext = (
  record: TurnRecord,
  messages: readonly MessageEvent[],
  options: { systemPrompt: string; channelMessages: number; showsFiles?: boolean },
  signal: AbortSignal,
) => Promise<Context>;

interface ContextDeps {
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
    const asked = messageIds.at(-1);
    const [own, branch] = await Promise.all([
      history.find(id),
      history.read(conversationId, { ...most, ...(asked !== undefined && { upToId: asked }) }),
    ]);
    // If the turn restarts, its request must not contain its own answer or later messages.
    if (own !== undefined) {
      const [before, answer] = await Promise.all([
        history.read(conversationId, { ...most, beforeId: own.entryId }),
        readAnswer(history, { conversationId, id: own.entryId }),
      ]);
      return { ...before, written: answer ?? UNWRITTEN };
    }
    if (branch.entries.length > 0) return branch;
    // The question is not in the history, because it could not be stored.
    return history.read(conversationId, most);
  }

  /** Adds questions that the history lacks, or has only as messages to other people. */
  function withMessages(entries: readonly HistoryEntry[], messages: readonly MessageEvent[]): HistoryEntry[] {
    const asked = new Set(entries.flatMap(({ id, isEarlier }) => (isEarlier === true ? [] : id)));
    if (messages.every(({ messageId }) => asked.has(messageId))) return [...entries];
    const own = new Set(messages.map(({ messageId }) => messageId));
    return [...entries.filter(({ id }) => !own.has(id)), ...messages.map(toEntry)];
  }

  async function readEntries(record: TurnRecord, messages: readonly MessageEvent[], signal: AbortSignal) {
    try {
      // Reads twice, because the first read can time out if this process was paused.
      const look = () => readBranch(record);
      const branch = await retry(look, { pausesMs: [READ_AGAIN_MS], mayPass: isStoreOutage }, signal);
      const entries = withMessages(branch.entries, messages);
      const first = branch.hasOlder ? await history.readFirst(record.conversationId) : entries[0];
      return { written: UNWRITTEN, ...branch, entries, first, notices: [] as string[] };
    } catch (error) {
      signal.throwIfAborted();
      // Without the history, this question is unknown.
      if (messages.length === 0) throw error;
      log.error({ err: error, turnId: record.id }, "the history could not be read");
      const notice = "_My storage is unavailable: I wrote this answer without the earlier conversation._";
      return {
        entries: messages.map(toEntry),
        first: undefined,
        hasOlder: false,
        notices: [notice],
        written: UNWRITTEN,
      };
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
    // The history does not store the channel's messages around the question.
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
      given: {
        shown: stored.map(({ id }) => id),
        withFiles: stored.filter(shown.isShown).map(({ id }) => id),
        dropped,
        hasOlder,
        ...(fromChannel > 0 && { fromChannel }),
      },
      messages: toMessages(systemPrompt, kept, shown.partsOf),
      notices,
      files: showsFiles ? kept.flatMap(({ attachments }) => attachments ?? []) : [],
      oldestShownId: isCut ? oldest?.id : undefined,
      written,
    };
  };
}

/** Files get the tokens that people's words leave free: at least a quarter and at most three quarters of the window. */
function toRoomForFiles(maxTokens: number, saidTokens: number): number {
  return Math.floor(Math.min(0.75 * maxTokens, Math.max(0.25 * maxTokens, maxTokens - saidTokens)));
}

/** Puts the first message of the thread at the front, however old it is. */
function withRoot(entries: readonly HistoryEntry[], { first }: Branch): HistoryEntry[] {
  const isMissing = first?.isRoot === true && entries.every(({ id }) => id !== first.id);
  return isMissing ? [first, ...entries] : [...entries];
}

function withoutQuoted(entries: readonly HistoryEntry[]): HistoryEntry[] {
  const quoted = new Set(entries.map(({ quotes }) => quotes));
  return entries.filter(({ id, isEarlier }) => isEarlier !== true || !quoted.has(id));
}

/**
 * The model sees the content of files only in this many of the newest messages with files. For older messages, it sees
 * only the files' names.
 */
const MESSAGES_WITH_FILES = 4;

const NOT_READ = "Your files were not read: you're not allowed to have files read here.";

interface FilesOptions {
  files: Pick<Files, "load">;
  maxTokens: number;
  owner: string;
  showsFiles: boolean;
}

interface FilesInContext {
  partsOf(entry: HistoryEntry): ContentPart[];
  isShown(entry: HistoryEntry): boolean;
  tokensOf(entry: HistoryEntry): number;
  /** One sentence of Markdown for each file in these messages that the model does not see completely. */
  noticesOf(messageIds: readonly string[]): string[];
}

/** Reads files for the model, newest entry first, until `maxTokens` are used up. Rejects with the signal's reason. */
async function showFiles(
  entries: readonly HistoryEntry[],
  { files, maxTokens, owner, showsFiles }: FilesOptions,
  signal: AbortSignal,
): Promise<FilesInContext> {
  const shown = new Map<string, ShownFiles>();
  const withFiles = entries.filter(({ attachments }) => (attachments?.length ?? 0) > 0);
  let left = maxTokens;
  const read = showsFiles ? withFiles.slice(-MESSAGES_WITH_FILES) : [];
  for (const { id, attachments } of read.toReversed()) {
    const loaded = await files.load(attachments ?? [], owner, signal);
    const one = await toContentParts(loaded, left);
    left = Math.max(0, left - one.tokens);
    shown.set(id, one);
  }
  const toShown = (entry: HistoryEntry) =>
    shown.get(entry.id) ?? nameFiles((entry.attachments ?? []).map(({ name }) => name));
  return {
    partsOf: (entry) => toShown(entry).parts,
    isShown: ({ id }) => shown.has(id),
    tokensOf: (entry) => toShown(entry).tokens,
    noticesOf(messageIds) {
      const isLeftOut = !showsFiles && withFiles.some(({ id }) => messageIds.includes(id));
      return isLeftOut ? [NOT_READ] : messageIds.flatMap((id) => shown.get(id)?.notices ?? []);
    },
  };
}

const EARLIER_TIMEOUT_MS = 5_000;

/** How many earlier messages of a thread to read at most. This is more than the usual window shows. */
const MAX_EARLIER_MESSAGES = 400;

/** Stored as the time of the last reading if the earlier messages could not be read. */
const NOTHING_YET = 0;

const ONLY_A_PART = "_I could read only some of the earlier messages here._";

const NOTHING = "_I couldn't read the earlier messages here._";

/**
 * Adds the earlier messages of a thread to the history, up to the newest question: all of them for the first question
 * in a conversation, otherwise those since the previous question. Does nothing in a private conversation. Has a time
 * limit and ignores failures. Rejects only if `signal` aborts.
 */
export type BringEarlier = (questions: readonly MessageEvent[], signal: AbortSignal) => Promise<Brought>;

export interface Brought {
  /** A sentence for people. Present if the messages before the first question could not be read completely. */
  notice?: string;
  /** Unix milliseconds. There were no messages to add before this time. The history stores this with the question. */
  nothingUntil?: number;
}

/**
 * Stores messages that were not for the bot, so that its next answer can use them. Skips conversations that the bot has
 * no history of. Never rejects.
 */
export type Overhear = (messages: readonly MessageEvent[]) => Promise<void>;

interface BringEarlierDeps {
  history: Pick<History, "broughtUntil" | "bring">;
  adapterOf(platform: string): Pick<Adapter, "readEarlier">;
  log: Logger;
}

export function createBringEarlier({ history, adapterOf, log }: BringEarlierDeps): BringEarlier {
  return async (questions, signal) => {
    const newest = questions.at(-1);
    if (newest === undefined) return {};
    const { conversationId, reply, at } = newest;
    const adapter = adapterOf(reply.platform);
    // A private conversation must not contain public messages.
    if (adapter.readEarlier === undefined || reply.visibleTo !== undefined) return {};
    const readEarlier = adapter.readEarlier.bind(adapter);
    let until: number | undefined;
    try {
      until = (await history.broughtUntil(conversationId)) ?? NOTHING_YET;
      if (until >= at) {
        if (until === Infinity) await history.bring(conversationId, [], at);
        return {};
      }
      const range = { ...(until > NOTHING_YET && { since: until }), maxMessages: MAX_EARLIER_MESSAGES };
      const reading = (signal: AbortSignal) => readEarlier(newest, range, signal);
      const { messages, isPartial = false } = await runWithin(EARLIER_TIMEOUT_MS, reading, signal);
      // Leaves questions out here, because the history stores each of them on its own branch. They keep their order
      // among the other messages.
      const own = new Set(questions.filter(isOnBranch).map(({ messageId }) => messageId)).add(newest.messageId);
      const read = new Set([...own, ...messages.map(({ messageId }) => messageId)]);
      // The read lacks these questions: an earlier attempt read the messages up to them, but could not store them.
      const unread = questions.filter(({ messageId }) => !read.has(messageId));
      const others = messages.filter(({ messageId }) => !own.has(messageId));
      const said = [...unread, ...others].toSorted((a, b) => a.at - b.at);
      if (said.length === 0 && !isPartial) return { nothingUntil: at };
      // After a partial read, notes only the time of the newest message, so that the next question reads the rest.
      const readUntil = isPartial ? Math.max(until, ...said.map((message) => message.at)) : at;
      await history.bring(conversationId, toEarlierEntries(said, reply), readUntil);
      return isPartial && until === NOTHING_YET ? { notice: ONLY_A_PART } : {};
    } catch (error) {
      signal.throwIfAborted();
      log.warn({ err: error, conversationId }, "earlier messages of a thread could not be read");
      // The next question retries this. If this is the first question, its answer needs a notice. Otherwise it would
      // seem to know all messages.
      if (until !== NOTHING_YET) return {};
      await history.bring(conversationId, [], NOTHING_YET).catch(() => {});
      return { notice: NOTHING };
    }
  };
}

function isOnBranch({ inReplyTo }: MessageEvent): boolean {
  return inReplyTo !== undefined;
}

export function createOverhear(history: Pick<History, "isNew" | "append">, log: Logger): Overhear {
  return async (messages) => {
    for (const message of messages) {
      const { conversationId, reply, inReplyTo } = message;
      try {
        // In a conversation without a history, people are only talking to each other.
        if (await history.isNew(conversationId)) continue;
        const [entry] = toEarlierEntries([message], reply);
        if (entry !== undefined) await history.append(conversationId, entry, [], inReplyTo);
      } catch (error) {
        log.warn({ err: error, conversationId }, "a message to others could not be stored");
      }
    }
  };
}

/** The largest part of a message to other people that the history stores. */
const MAX_EARLIER_CHARS = 4_000;

/** Converts messages to history entries. Drops repeated and empty messages. */
function toEarlierEntries(said: readonly EarlierMessage[], reply: ReplyAddress): HistoryEntry[] {
  const entries = new Map<string, HistoryEntry>();
  for (const message of said) {
    const { messageId, text, attachments, by, isRoot } = message;
    if (text.trim() === "" && attachments.length === 0) continue;
    const marks = { isEarlier: true, ...(by !== undefined && { by }), ...(isRoot && { isRoot }) };
    entries.set(messageId, { ...toEntry({ ...message, text: toBounded(text), reply }), ...marks });
  }
  return [...entries.values()];
}

function toBounded(text: string): string {
  if (text.length <= MAX_EARLIER_CHARS) return text;
  const kept = truncate(text, MAX_EARLIER_CHARS, "");
  return `${kept}\n[… ${text.length - kept.length} characters left out …]`;
}

const TALK_TIMEOUT_MS = 5_000;

/**
 * Reads the channel's last messages around a question, or around the first message of the question's thread. Leaves out
 * messages of the question's own conversation, because the branch already has them or they belong to another branch.
 * Reads nothing for a private question, and stores nothing. Has a time limit and ignores failures. Rejects only if
 * `signal` aborts.
 */
type ReadChannelTalk = (
  record: TurnRecord,
  branch: Branch,
  maxMessages: number,
  signal: AbortSignal,
) => Promise<HistoryEntry[]>;

interface Branch {
  entries: readonly HistoryEntry[];
  first: HistoryEntry | undefined;
}

interface ChannelTalkDeps {
  history: Pick<History, "find">;
  adapterOf(platform: string): Pick<Adapter, "readChannel">;
  log: Logger;
}

export function createReadChannelTalk({ history, adapterOf, log }: ChannelTalkDeps): ReadChannelTalk {
  return async ({ reply, messageIds, conversationId }, { entries, first }, maxMessages, signal) => {
    const adapter = adapterOf(reply.platform);
    if (adapter.readChannel === undefined || maxMessages < 1 || reply.visibleTo !== undefined) return [];
    const readChannel = adapter.readChannel.bind(adapter);
    // If other people started the thread, its first message is not a question to the bot.
    const began = first === undefined || first.isEarlier === true ? [] : [first.id];
    const ids = [...messageIds.toReversed(), ...began];
    try {
      const said = await runWithin(TALK_TIMEOUT_MS, (signal) => readChannel(reply, ids, maxMessages, signal), signal);
      // A question that was just asked may not be in the history yet.
      const known = new Set([...ids, ...entries.map(({ id }) => id)]);
      const places = await Promise.all(said.map(({ messageId }) => history.find(messageId)));
      const isTalk = ({ messageId }: EarlierMessage, index: number) =>
        !known.has(messageId) && places[index]?.conversationId !== conversationId;
      return toEarlierEntries(said.filter(isTalk), reply);
    } catch (error) {
      signal.throwIfAborted();
      log.warn({ err: error, conversationId }, "the channel around a question could not be read");
      return [];
    }
  };
}

/** Shorter texts are not cached, because counting their tokens is faster than a look-up. */
const LONG_CHARS = 1_000;
const MAX_COUNTS = 5_000;

/** The keys are digests, so that no person's words stay in memory. */
const counts = new BoundedMap<string, number>(MAX_COUNTS);

/**
 * Estimates the tokens of a text. Caches the counts of long texts, which take milliseconds and are needed each round.
 */
export function estimateTokens(text: string): number {
  if (text.length < LONG_CHARS) return estimateTokenCount(text);
  const digest = hash("sha256", text, "base64");
  const known = counts.get(digest);
  if (known !== undefined) return known;
  const count = estimateTokenCount(text);
  counts.set(digest, count);
  return count;
}
