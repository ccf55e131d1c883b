/** Lists and reads the channels that a person can catch up on. */
import { type APIChannel, type APIMessage, ChannelType, type RouteLike, Routes } from "discord.js";
import { mapBounded } from "../../../src/concurrency/deadlines.ts";
import { createSharedLookups } from "../../../src/concurrency/shared-lookups.ts";
import type { Adapter } from "../../../src/port/adapter.ts";
import type { Actor } from "../../../src/port/catalogue.ts";
import { SearchProblem } from "../../../src/port/errors.ts";
import type { ReadablePlace, RecentMessage, RecentRange } from "../../../src/port/events.ts";
import { LOST_THREAD, MANY_THREADS, MAX_THREADS, TOO_MANY, toRecent } from "../../../src/port/recent.ts";
import { LONGEST_WAIT_MS, readPatiently } from "../api/client.ts";
import { waitOf } from "../api/error.ts";
import { PLATFORM, timeOf, toMessageId } from "../ids.ts";
import { createToEarlier, type EarlierDeps } from "./earlier.ts";

/** Discord's maximum per call. */
const PAGE = 100;
/** Longest reading of one channel; what is read by then counts. */
const READ_MS = 45_000;
const CALLS_AT_ONCE = 3;
/** The epoch of Discord's ids, and the bits below the time. */
const EPOCH_MS = 1_420_070_400_000;
const TIME_SHIFT = 22n;

const DIRECT = "Discord lists one server at a time: use `/catchup all` in a channel of the server.";
const TOO_SLOW = "I hit Discord's limits before I had read everything; the messages I missed are older.";
const UNLISTED = "Discord didn't list all threads, so some are missing.";
const NOT_READABLE = "I can't read this channel: I need the permissions View Channel and Read Message History there.";

/** Channels with messages, and those that only have threads. */
const WRITTEN_IN = new Set([ChannelType.GuildText, ChannelType.GuildAnnouncement]);
const THREADS_ONLY = new Set([ChannelType.GuildForum, ChannelType.GuildMedia]);

interface RecentDeps extends EarlierDeps {
  mayShow: NonNullable<Adapter["mayShow"]>;
}

type Place = APIChannel & { guild_id?: string; parent_id?: string | null; last_message_id?: string | null };

interface ThreadList {
  threads: Place[];
}

type Look = <T>(route: RouteLike, signal: AbortSignal) => Promise<T>;
type ReadsRecent = Required<Pick<Adapter, "listReadable" | "readRecent">>;

export function createReadsRecent(deps: RecentDeps): ReadsRecent {
  const shared = createSharedLookups();
  const look: Look = <T>(route: RouteLike, signal: AbortSignal) =>
    shared(signal, route, () => readPatiently<T>(deps.api, route, signal));
  return { listReadable: createListReadable(deps, look), readRecent: createReadRecent(deps, look) };
}

/** The bot's own rights. */
function mayRead(channelId: string, { reply }: Actor, { mayShow, knownOf }: RecentDeps, signal: AbortSignal) {
  const { botId } = knownOf(reply);
  const bot = { id: botId, name: "" };
  return mayShow(`${PLATFORM}:${channelId}`, { author: bot, reply: { ...reply, visibleTo: botId } }, signal);
}

function createListReadable(deps: RecentDeps, look: Look): ReadsRecent["listReadable"] {
  const toPlace = ({ id, name, type, parent_id: categoryId }: Place): ReadablePlace => ({
    id: `${PLATFORM}:${id}`,
    name: `#${name ?? "channel"}`,
    channelId: id,
    ...(categoryId && !isThread({ type }) && { categoryId }),
  });

  return async (which, to, signal) => {
    const { workspaceId, channelId } = to.reply;
    if (which === "here") {
      return workspaceId === undefined ? [] : [toPlace(await look<Place>(Routes.channel(channelId), signal))];
    }
    if (workspaceId === undefined) throw new SearchProblem(DIRECT);
    const all = await look<Place[]>(Routes.guildChannels(workspaceId), signal);
    const newest = ({ last_message_id: id }: Place) => (id ? timeOf(id) : 0);
    const own = all
      .filter(({ type }) => WRITTEN_IN.has(type) || THREADS_ONLY.has(type))
      .toSorted((one, other) => newest(other) - newest(one));
    const open = await mapBounded(own, CALLS_AT_ONCE, async (channel) =>
      (await mayRead(channel.id, to, deps, signal)) ? [toPlace(channel)] : [],
    );
    return open.flat();
  };
}

function createToMessages(deps: RecentDeps) {
  const toEarlier = createToEarlier(deps);
  return async (found: readonly APIMessage[], place: Place, guildId: string, to: Actor, signal: AbortSignal) => {
    const raws = new Map(found.map((raw) => [toMessageId({ channelId: place.id, messageId: raw.id }), raw]));
    const seen = await toEarlier(
      found.map((message) => ({ message })),
      { ...to.reply, workspaceId: guildId },
      signal,
    );
    return seen.map((message): RecentMessage => {
      const raw = raws.get(message.messageId);
      const isOwn = message.author.id === to.author.id;
      const isMentioned = raw?.mentions.some(({ id }) => id === to.author.id) === true;
      const isAnswered = raw?.referenced_message?.author.id === to.author.id;
      return toRecent(message, {
        link: `https://discord.com/channels/${guildId}/${place.id}/${raw?.id}`,
        ...(isThread(place) && { threadId: place.id }),
        ...(place.type === ChannelType.PrivateThread && { privateId: `${PLATFORM}:${place.id}` }),
        ...(!isOwn && (isMentioned || isAnswered) && { concernsAsker: true as const }),
      });
    });
  };
}

function createReadRecent(deps: RecentDeps, look: Look): ReadsRecent["readRecent"] {
  const { api, mayShow } = deps;
  const toMessages = createToMessages(deps);

  /** Newest first. */
  async function readBack(channelId: string, range: RecentRange, ownId: string, signal: AbortSignal) {
    const bounded = AbortSignal.any([signal, AbortSignal.timeout(READ_MS)]);
    const found: APIMessage[] = [];
    let before = toIdAt(range.until);
    let hasMore = true;
    while (hasMore && found.length < range.maxMessages) {
      let page: APIMessage[];
      try {
        page = await readPatiently(api, Routes.channelMessages(channelId), bounded, { before, limit: String(PAGE) });
      } catch (error) {
        signal.throwIfAborted();
        const waitMs = waitOf(error);
        if (!bounded.aborted && waitMs === undefined) throw error;
        // Other reads can use up the calls that this one waits for.
        if (!bounded.aborted && waitMs !== undefined && waitMs <= LONGEST_WAIT_MS) continue;
        return { found, gap: TOO_SLOW };
      }
      const wanted = page.filter(({ id }) => timeOf(id) >= range.since);
      found.push(...wanted);
      before = page.at(-1)?.id ?? before;
      const hasOwn = range.fromOwn && wanted.some(({ author }) => author.id === ownId);
      hasMore = page.length === PAGE && wanted.length === page.length && !hasOwn;
    }
    return { found, ...(hasMore && { gap: TOO_MANY }) };
  }

  /** The threads of a channel with messages in the range that the asker can open, the latest first. */
  async function findThreads(channel: Place, { since }: RecentRange, to: Actor, signal: AbortSignal) {
    const routes = [Routes.guildActiveThreads(channel.guild_id ?? ""), Routes.channelThreads(channel.id, "public")];
    const list = (route: RouteLike) => look<ThreadList>(route, signal).catch(() => undefined);
    const lists = (await Promise.all(routes.map(list))).filter((one) => one !== undefined);
    signal.throwIfAborted();
    const newest = ({ last_message_id: id }: Place) => (id ? timeOf(id) : 0);
    const active = lists
      .flatMap(({ threads }) => threads)
      .filter((thread) => thread.parent_id === channel.id && newest(thread) >= since)
      .toSorted((one, other) => newest(other) - newest(one));
    const isOpen = async (thread: Place) =>
      thread.type !== ChannelType.PrivateThread || (await mayShow(`${PLATFORM}:${thread.id}`, to, signal));
    const open = await mapBounded(active, CALLS_AT_ONCE, async (thread) => ((await isOpen(thread)) ? [thread] : []));
    return { threads: open.flat(), areAll: lists.length === routes.length };
  }

  return async (placeId, range, to, signal) => {
    const channel = await look<Place>(Routes.channel(placeId.slice(PLATFORM.length + 1)), signal);
    const guildId = channel.guild_id ?? "";
    if (!(await mayRead(channel.id, to, deps, signal))) throw new SearchProblem(NOT_READABLE);
    const { threads, areAll } = await findThreads(channel, range, to, signal);
    const gaps = new Set<string>();
    if (!areAll) gaps.add(UNLISTED);
    if (threads.length > MAX_THREADS) gaps.add(MANY_THREADS);
    const places = [...(THREADS_ONLY.has(channel.type) ? [] : [channel]), ...threads.slice(0, MAX_THREADS)];
    const messages = await mapBounded(places, CALLS_AT_ONCE, async (place) => {
      try {
        const { found, gap } = await readBack(place.id, range, to.author.id, signal);
        if (gap !== undefined) gaps.add(gap);
        return await toMessages(found.toReversed(), place, guildId, to, signal);
      } catch (error) {
        if (signal.aborted || !isThread(place)) throw error;
        gaps.add(LOST_THREAD);
        return [];
      }
    });
    return { messages: messages.flat(), gaps: [...gaps] };
  };
}

function isThread({ type }: Pick<Place, "type">): boolean {
  return type >= ChannelType.AnnouncementThread && type <= ChannelType.PrivateThread;
}

/** The smallest id of a time, Unix milliseconds. */
function toIdAt(at: number): string {
  return String(BigInt(Math.max(0, Math.floor(at) - EPOCH_MS)) << TIME_SHIFT);
}
