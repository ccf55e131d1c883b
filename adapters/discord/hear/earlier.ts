import { type APIChannel, type APIMessage, ChannelType, MessageType, Routes } from "discord.js";
import { untilAborted } from "../../../src/concurrency/deadlines.ts";
import type { Adapter } from "../../../src/port/adapter.ts";
import type { Earlier, EarlierMessage, EarlierRange, MessageEvent, ReplyAddress } from "../../../src/port/events.ts";
import { type Api, read } from "../api/client.ts";
import { codeOf } from "../api/error.ts";
import type { Files } from "../api/files.ts";
import { askNames, type NamedRooms } from "../api/names.ts";
import { createOptionalCalls, type OptionalCalls } from "../api/optional-calls.ts";
import { type MessagePlace, PLATFORM, readMessageId, timeOf, toMessageId } from "../ids.ts";
import { createIsThere, createMayShow } from "./access.ts";
import { isByPerson, isReplyHere, isWritten, toWhole } from "./inbound.ts";
import { toAuthor } from "./people.ts";
import { type Message, readSeen } from "./wording.ts";

/** The time limit for all pages after the first. When it is over, the bot uses the pages that it has. */
const PAGES_MS = 3_000;
/** The longest chain of replies to follow back. Each reply costs one call. */
const MAX_CHAIN = 6;
const UNKNOWN_MESSAGE = 10008;
/** Higher than the id of any message. */
const NEWEST = "9223372036854775807";

export interface EarlierDeps {
  api: Api;
  files: Pick<Files, "toRefs">;
  /** The bot's id, and the channels that this process knows. No channels if it does not receive the shard's events. */
  knownOf(reply: ReplyAddress): { botId: string; rooms: NamedRooms | undefined };
}

/** How many reads of one channel can run at once until Discord's headers show its limit. */
const READS_AT_ONCE = 3;

type ReadsEarlier = Required<Pick<Adapter, "readEarlier" | "readChannel" | "mayShow" | "isThere" | "readLinked">>;

const LINK = /^https?:\/\/(?:\w+\.)?discord(?:app)?\.com\/channels\/(\d+)\/(\d+)\/(\d+)\/?$/;
const AROUND = 25;

/**
 * In a thread or a forum post, reads the messages above the question. In a channel, reads the chain of replies that
 * leads to the question, because only replies connect a channel's messages to a conversation. A direct conversation has
 * no earlier messages, because the bot was there from the start.
 */
export function createReadsEarlier(deps: EarlierDeps): ReadsEarlier {
  const calls = createOptionalCalls(deps.api, { firstCalls: READS_AT_ONCE, reserve: 1 });
  const readAboveInChannel = createReadAboveInChannel(calls);
  const mayShow = createMayShow(deps);
  const toEarlier = createToEarlier(deps);

  return {
    mayShow,
    isThere: createIsThere(deps),
    async readLinked(link, maxMessages, to, signal) {
      const [, guildId, channelId, messageId] = LINK.exec(link) ?? [];
      if (guildId === undefined || channelId === undefined || messageId === undefined) return undefined;
      if (!(await mayShow(`${PLATFORM}:${channelId}`, to, signal))) return undefined;
      const message = await readMessage({ channelId, messageId }, deps.api, signal);
      if (message === undefined) return undefined;
      const found = await readAround(message, maxMessages, { ...deps, calls }, signal);
      return toEarlier(found, { ...to.reply, workspaceId: guildId }, signal);
    },
    async readEarlier(event, range, signal) {
      const { found, isPartial } = await readAbove(event, range, { ...deps, calls }, signal);
      const messages = await toEarlier(found, event.reply, signal);
      // Leaves out the bot's own messages, which the history has, unless the whole thread is requested.
      const others = range.since === undefined ? messages : messages.filter(({ by }) => by !== "bot");
      return { messages: others, ...(isPartial && { isPartial }) };
    },

    async readChannel(reply, messageIds, maxMessages, signal) {
      const { channelId, threadId, extra, since, isDirect } = reply;
      const isRun = since !== undefined && threadId === undefined && isDirect !== true;
      // Reads nothing in a direct conversation. A thread whose channel is unknown looks like one: it has only its own
      // id.
      if (threadId === undefined && extra?.["root"] === undefined && !isRun) return [];
      const place = messageIds.map(readMessageId).find((one) => one?.channelId === channelId);
      // A run of a schedule answers no message, so the newest messages are read.
      const before = place?.messageId ?? (isRun ? NEWEST : undefined);
      if (before === undefined) return [];
      const newest = await readAboveInChannel(channelId, before, maxMessages, signal);
      return newest === undefined ? [] : toEarlier(newest.toReversed().map(toFound), reply, signal);
    },
  };
}

export function createToEarlier(deps: EarlierDeps) {
  return async (found: readonly Found[], reply: ReplyAddress, signal: AbortSignal): Promise<EarlierMessage[]> => {
    const { botId, rooms: known } = deps.knownOf(reply);
    const about = { guildId: reply.workspaceId, botId, texts: found.map(({ message }) => message.content) };
    const rooms = known ?? (await askNames(deps.api, about, signal));
    return found.flatMap((one) => toEarlierMessage(one, { ...deps, rooms, botId }));
  };
}

interface Found {
  message: APIMessage;
  isRoot?: true;
}

interface Above {
  /** Oldest first. */
  found: Found[];
  isPartial?: Earlier["isPartial"];
}

/**
 * Reads the thread that contains the message or was opened from the message. In a channel, reads the messages around
 * the message.
 */
async function readAround(
  message: APIMessage,
  maxMessages: number,
  { api, calls }: EarlierDeps & { calls: OptionalCalls },
  signal: AbortSignal,
): Promise<Found[]> {
  const { channel_id: channelId, id, thread } = message;
  const { type } = await read<APIChannel>(api, Routes.channel(channelId), signal);
  const isInThread = type === ChannelType.PublicThread || type === ChannelType.AnnouncementThread;
  const threadId = isInThread ? channelId : thread?.id;
  if (threadId === undefined) {
    const around = await readPage(channelId, { around: id }, Math.min(AROUND, maxMessages), calls, signal);
    return (around ?? [message]).toReversed().map(toFound);
  }
  const { found } = await readThread({ channelId: threadId, messageId: NEWEST }, { maxMessages }, calls, signal);
  return found;
}

async function readAbove(
  event: MessageEvent,
  range: EarlierRange,
  deps: EarlierDeps & { calls: OptionalCalls },
  signal: AbortSignal,
): Promise<Above> {
  const threadId = toThreadId(event);
  const isRun = event.scheduled !== undefined && threadId !== undefined;
  const place = isRun ? { channelId: threadId, messageId: NEWEST } : readMessageId(event.messageId);
  if (place === undefined) return { found: [] };
  if (threadId === undefined) return { found: range.since === undefined ? await readChain(event, deps, signal) : [] };
  // The thread was opened from the question, so nothing is before the question.
  if (threadId === place.messageId) return { found: [] };
  return readThread({ channelId: threadId, messageId: place.messageId }, range, deps.calls, signal);
}

/** Undefined for a question in a channel or in a direct conversation. */
function toThreadId({ reply }: MessageEvent): string | undefined {
  if (reply.threadId !== undefined) return reply.threadId;
  // With its channel unknown, a thread looks like a direct conversation. But only in a thread does the bot reply to a
  // message.
  return reply.extra?.["root"] === undefined && reply.replyToId !== undefined ? reply.channelId : undefined;
}

/** Reads a thread from its newest message back to its first one or to `since`. */
async function readThread(
  { channelId, messageId }: MessagePlace,
  { since, maxMessages }: EarlierRange,
  calls: OptionalCalls,
  signal: AbortSignal,
): Promise<Above> {
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(PAGES_MS)]);
  const isWanted = ({ id }: APIMessage) => since === undefined || timeOf(id) >= since;
  const newestFirst: APIMessage[] = [];
  let before = messageId;
  let isPartial = false;
  for (let hasMore = true; hasMore; ) {
    const count = Math.min(PAGE, maxMessages - newestFirst.length);
    const isFirst = newestFirst.length === 0;
    const page = await readPage(channelId, { before }, count, calls, isFirst ? signal : bounded).catch((error) => {
      if (isFirst) throw error;
      return undefined;
    });
    const wanted = page?.filter(isWanted) ?? [];
    newestFirst.push(...wanted);
    before = page?.at(-1)?.id ?? before;
    const isEnd = page !== undefined && (page.length < count || wanted.length < page.length);
    isPartial = !isEnd && (page === undefined || newestFirst.length >= maxMessages);
    hasMore = !isEnd && !isPartial;
  }
  const starters = newestFirst.toReversed().flatMap(toStarter(channelId));
  // Checks the messages that pointers refer to, because they can be older than `since` although the pointer is not.
  const found = starters.filter(({ message }) => isWanted(message));
  const hasRoot = since !== undefined || !isPartial || found[0]?.isRoot === true;
  const root = hasRoot ? [] : await readRoot(channelId, calls, signal);
  return { found: [...root, ...found], ...(isPartial && { isPartial }) };
}

/** A thread opened from a message starts with a pointer to it. A forum post's first message has the thread's id. */
function toStarter(threadId: string): (message: APIMessage) => Found[] {
  return (message) => {
    if (message.id === threadId) return [{ message, isRoot: true }];
    if (message.type !== MessageType.ThreadStarterMessage) return [{ message }];
    const starter = message.referenced_message;
    return starter ? [{ message: starter, isRoot: true }] : [];
  };
}

async function readRoot(threadId: string, calls: OptionalCalls, signal: AbortSignal): Promise<Found[]> {
  const oldest = (await readPage(threadId, { after: "0" }, 1, calls, signal)) ?? [];
  return oldest.flatMap(toStarter(threadId)).filter(({ isRoot }) => isRoot);
}

async function readChain(
  { inReplyTo = "", author, reply }: MessageEvent,
  { api, knownOf }: EarlierDeps,
  signal: AbortSignal,
): Promise<Found[]> {
  const { botId } = knownOf(reply);
  const found: Found[] = [];
  let place = readMessageId(inReplyTo);
  for (let step = 0; place !== undefined && step < MAX_CHAIN; step++) {
    const message = await readMessage(place, api, signal);
    // Stops at the bot's own message, because a reply to it belongs to a known conversation.
    if (message === undefined || message.author.id === botId) break;
    // Skips the first message if another user wrote it, because the question already quotes it.
    if (step > 0 || message.author.id === author.id) found.unshift({ message });
    place = toParent(toWhole(message, botId));
  }
  return found;
}

/** Resolves to a message. Undefined if Discord does not show it. Never rejects. */
export type FindMessage = (place: MessagePlace) => Promise<APIMessage | undefined>;

export function createFindMessage(api: Api, closing: AbortSignal): FindMessage {
  return (place) => readMessage(place, api, closing).catch(() => undefined);
}

async function readMessage(place: MessagePlace, api: Api, signal: AbortSignal): Promise<APIMessage | undefined> {
  try {
    return await read<APIMessage>(api, Routes.channelMessage(place.channelId, place.messageId), signal);
  } catch (error) {
    if (codeOf(error) !== UNKNOWN_MESSAGE) throw error;
    return undefined;
  }
}

function toParent(message: Message): MessagePlace | undefined {
  const messageId = message.message_reference?.message_id;
  return isReplyHere(message) && messageId !== undefined ? { channelId: message.channel_id, messageId } : undefined;
}

function toFound(message: APIMessage): Found {
  return { message };
}

function toEarlierMessage(
  { message: given, isRoot }: Found,
  { files, botId, rooms }: Pick<EarlierDeps, "files"> & { botId: string; rooms: NamedRooms },
): EarlierMessage[] {
  const message = toWhole(given, botId);
  if (!isWritten(message)) return [];
  const guildId = rooms.guildIdOf(message.channel_id);
  const placed: Message = { ...message, ...(guildId !== undefined && { guild_id: guildId }) };
  const text = readSeen(placed, { rooms });
  const attachments = files.toRefs(message);
  if (text === "" && attachments.length === 0) return [];
  const by = message.author.id === botId ? "bot" : isByPerson(message) ? undefined : "app";
  return [
    {
      messageId: toMessageId({ channelId: message.channel_id, messageId: message.id }),
      author: toAuthor(message.author, undefined),
      text,
      attachments,
      at: timeOf(message.id),
      ...(by !== undefined && { by }),
      ...(isRoot && { isRoot }),
    },
  ];
}

/** Discord's maximum per call. */
const PAGE = 100;
const PAGE_MS = 5_000;

/** Newest first, as Discord lists them. Undefined if the call was skipped because of the rate limit. */
async function readPage(
  channelId: string,
  from: Record<string, string>,
  limit: number,
  calls: OptionalCalls,
  signal: AbortSignal,
): Promise<APIMessage[] | undefined> {
  const query = new URLSearchParams({ ...from, limit: String(limit) });
  const answer = await calls.call(
    channelId,
    { method: "GET", route: Routes.channelMessages(channelId), query },
    signal,
  );
  return answer?.data as APIMessage[] | undefined;
}

/** Reads the messages above a message in a channel, newest first, like `readPage`. */
type ReadAboveInChannel = (
  channelId: string,
  messageId: string,
  count: number,
  signal: AbortSignal,
) => Promise<APIMessage[] | undefined>;

/** A page for all questions that requested it before the bot started to read it. */
interface Shared {
  newestId: string;
  count: number;
  isForMany: boolean;
  page: Promise<APIMessage[] | undefined>;
}

/**
 * If questions arrive while a page is being read, they share the next page, because Discord handles the calls for one
 * channel one after another. Five simultaneous questions need at most two calls.
 */
function createReadAboveInChannel(calls: OptionalCalls): ReadAboveInChannel {
  const reading = new Map<string, Promise<unknown>>();
  const waiting = new Map<string, Shared>();

  function open(channelId: string, newestId: string, count: number): Shared {
    const read = () => {
      waiting.delete(channelId);
      const limit = shared.isForMany ? PAGE : shared.count;
      return readPage(channelId, { before: shared.newestId }, limit, calls, AbortSignal.timeout(PAGE_MS));
    };
    const page = (reading.get(channelId) ?? Promise.resolve()).then(read);
    const shared: Shared = { newestId, count, isForMany: false, page };
    const over: Promise<unknown> = page
      .catch(() => {})
      .then(() => reading.get(channelId) === over && reading.delete(channelId));
    reading.set(channelId, over);
    waiting.set(channelId, shared);
    return shared;
  }

  return async (channelId, messageId, count, signal) => {
    const there = waiting.get(channelId);
    const shared = there ?? open(channelId, messageId, count);
    if (there !== undefined) {
      there.isForMany = true;
      if (BigInt(messageId) > BigInt(there.newestId)) there.newestId = messageId;
    }
    const page = await untilAborted(shared.page, signal);
    const above = page?.filter(({ id }) => BigInt(id) < BigInt(messageId)).slice(0, count);
    const isCut = shared.isForMany && page?.length === PAGE && (above?.length ?? 0) < count;
    return isCut ? readPage(channelId, { before: messageId }, count, calls, signal) : above;
  };
}
