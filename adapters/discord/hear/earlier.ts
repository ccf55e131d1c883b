import { type APIChannel, type APIMessage, ChannelType, MessageType, Routes } from "discord.js";
import type { Adapter } from "../../../src/port/adapter.ts";
import type { Earlier, EarlierMessage, EarlierRange, MessageEvent, ReplyAddress } from "../../../src/port/events.ts";
import { askNames, type NamedRooms } from "../api/asked-names.ts";
import { type Api, read } from "../api/client.ts";
import { codeOf } from "../api/error.ts";
import type { Files } from "../api/files.ts";
import { createOptionalCalls, type OptionalCalls } from "../api/optional-calls.ts";
import { type MessagePlace, PLATFORM, readMessageId, timeOf, toMessageId } from "../ids.ts";
import { createMayShow } from "./access.ts";
import { isByPerson, isReplyHere, isWritten, toAuthor, toWhole } from "./inbound.ts";
import { createReadAboveInChannel, PAGE, readPage } from "./shared-pages.ts";
import { type Message, readSeen } from "./wording.ts";

/** Longest that pages after the first are read; those that came until then are used. */
const PAGES_MS = 3_000;
/** Replies that are followed back along a chain at most: one call each. */
const MAX_CHAIN = 6;
const UNKNOWN_MESSAGE = 10008;
/** Newer than every message there is. */
const NEWEST = "9223372036854775807";

export interface EarlierDeps {
  api: Api;
  files: Pick<Files, "toRefs">;
  /** The bot's id and the known channels at an address; no rooms where this process does not hear that shard. */
  knownOf(reply: ReplyAddress): { botId: string; rooms: NamedRooms | undefined };
}

/** Concurrent reads of one channel until Discord's headers tell its limit. */
const READS_AT_ONCE = 3;

type ReadsEarlier = Required<Pick<Adapter, "readEarlier" | "readChannel" | "mayShow" | "readLinked">>;

/** A link to a message, as Discord's menus make it. */
const LINK = /^https?:\/\/(?:\w+\.)?discord(?:app)?\.com\/channels\/(\d+)\/(\d+)\/(\d+)\/?$/;
/** Around a message that is in no thread. */
const AROUND = 25;

/**
 * In a thread or a forum post, reads the messages above the question; in a channel, the chain of replies that leads to
 * it, since only replying makes messages of a channel one conversation. A direct conversation has nothing earlier: the bot
 * was in it from its beginning.
 */
export function createReadsEarlier(deps: EarlierDeps): ReadsEarlier {
  const calls = createOptionalCalls(deps.api, { firstCalls: READS_AT_ONCE, reserve: 1 });
  const readAboveInChannel = createReadAboveInChannel(calls);
  const mayShow = createMayShow(deps);

  async function toEarlier(
    found: readonly Found[],
    reply: ReplyAddress,
    signal: AbortSignal,
  ): Promise<EarlierMessage[]> {
    const { botId, rooms: known } = deps.knownOf(reply);
    const about = { guildId: reply.workspaceId, botId, texts: found.map(({ message }) => message.content) };
    const rooms = known ?? (await askNames(deps.api, about, signal));
    return found.flatMap((one) => toEarlierMessage(one, { ...deps, rooms, botId }));
  }

  return {
    mayShow,
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
      // The history has the bot's own messages already, unless the whole thread is asked for.
      const others = range.since === undefined ? messages : messages.filter(({ by }) => by !== "bot");
      return { messages: others, ...(isPartial && { isPartial }) };
    },

    async readChannel(reply, messageIds, maxMessages, signal) {
      const { channelId, threadId, extra } = reply;
      // A thread whose channel is not known is named alone, and so is a direct conversation.
      if (threadId === undefined && extra?.["root"] === undefined) return [];
      const place = messageIds.map(readMessageId).find((one) => one?.channelId === channelId);
      if (place === undefined) return [];
      const newest = await readAboveInChannel(channelId, place.messageId, maxMessages, signal);
      return newest === undefined ? [] : toEarlier(newest.toReversed().map(toFound), reply, signal);
    },
  };
}

/** A message of a place, the one it began with marked. */
interface Found {
  message: APIMessage;
  isRoot?: true;
}

interface Above {
  /** Oldest first. */
  found: Found[];
  isPartial?: Earlier["isPartial"];
}

/** Reads the thread that a message is in, or that was opened from it; in a channel, the messages around it. */
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
  const place = readMessageId(event.messageId);
  const threadId = toThreadId(event);
  if (place === undefined) return { found: [] };
  if (threadId === undefined) return { found: range.since === undefined ? await readChain(event, deps, signal) : [] };
  // The thread was opened from the question itself.
  if (threadId === place.messageId) return { found: [] };
  return readThread({ channelId: threadId, messageId: place.messageId }, range, deps.calls, signal);
}

/** Undefined for a question in a channel or in a direct conversation. */
function toThreadId({ reply }: MessageEvent): string | undefined {
  if (reply.threadId !== undefined) return reply.threadId;
  // A thread whose channel is not known is named alone, like a direct conversation, where no reply points at anything.
  return reply.extra?.["root"] === undefined && reply.replyToId !== undefined ? reply.channelId : undefined;
}

/** Reads a thread from its newest message back to its first one, or to `since`. */
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
  // A starter sign may be new enough while the message that it points to is too old.
  const found = starters.filter(({ message }) => isWanted(message));
  const hasRoot = since !== undefined || !isPartial || found[0]?.isRoot === true;
  const root = hasRoot ? [] : await readRoot(channelId, calls, signal);
  return { found: [...root, ...found], ...(isPartial && { isPartial }) };
}

/** A thread opened from a message begins with a sign that points to it; a forum's post has the id of its thread. */
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
    // A reply to the bot belongs to a conversation that is known.
    if (message === undefined || message.author.id === botId) break;
    // A message of somebody else that is replied to stands in the question already, as a quotation.
    if (step > 0 || message.author.id === author.id) found.unshift({ message });
    place = toParent(toWhole(message, botId));
  }
  return found;
}

/** Resolves to a message; undefined where Discord does not show it. Never rejects. */
export type FindMessage = (place: MessagePlace) => Promise<APIMessage | undefined>;

export function createFindMessage(api: Api, closing: AbortSignal): FindMessage {
  return (place) => readMessage(place, api, closing).catch(() => undefined);
}

/** Undefined for one that was deleted. */
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
