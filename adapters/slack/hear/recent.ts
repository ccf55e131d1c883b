/** Lists and reads the channels that a person can catch up on. */
import { mapBounded } from "../../../src/concurrency/deadlines.ts";
import { createSharedLookups } from "../../../src/concurrency/shared-lookups.ts";
import type { Adapter } from "../../../src/port/adapter.ts";
import { SearchProblem } from "../../../src/port/errors.ts";
import type { ReadablePlace, RecentMessage, RecentRange } from "../../../src/port/events.ts";
import { LOST_THREAD, MANY_THREADS, MAX_THREADS, TOO_MANY, toRecent } from "../../../src/port/recent.ts";
import { readExtra } from "../address.ts";
import { ApiError, codeOf } from "../api/error.ts";
import { type Body, readText, toBodies, toBody } from "../api/wire.ts";
import type { Workspace } from "../api/workspaces.ts";
import { PLATFORM, readUserId, timeOf } from "../ids.ts";
import { isAbsence } from "./access.ts";
import { type EarlierDeps, PAGE, SOLD_PAGE, toEarlier } from "./earlier.ts";
import { mentions } from "./wording.ts";

/** How far before the range to look for messages with new replies, because Slack does not list threads. */
const THREADS_MS = 7 * 86_400_000;
const MAX_PAGES = 4;
const THREADS_AT_ONCE = 4;

const NOT_HERE = "I'm not in this channel, so I can't read it. Add me with `/invite` and my name.";
const SOLD = "Slack lets this app read only 15 messages a minute, so I read only the newest ones, and no threads.";
const SOLD_THREAD =
  "Slack lets this app read only 15 messages a minute, so the newest replies of a thread are missing.";
const SOLD_CHANNEL = "Slack lets this app read only 15 messages a minute, so I read none here.";
const SOLD_THREADS = "Slack lets this app read only 15 messages a minute, so I read no threads.";
const TOO_FAST = "I've reached Slack's reading limit, so some messages are missing. Try again in a minute.";
const OLD_THREADS = "I couldn't check all older threads for new replies.";
const LONG_THREAD = "I couldn't read all of a long thread; its newest replies are missing.";

type ReadsRecent = Required<Pick<Adapter, "listReadable" | "readRecent">>;

interface Place {
  workspace: Workspace;
  channelId: string;
  /** The start of every link to a message of the workspace. */
  linkBase: string;
  userId: string;
}

export function createReadsRecent(deps: EarlierDeps): ReadsRecent {
  return { listReadable: createListReadable(deps), readRecent: createReadRecent(deps) };
}

async function findWorkspace({ workspaces }: EarlierDeps, team: string, signal: AbortSignal): Promise<Workspace> {
  const workspace = await workspaces.find(team, signal);
  if (workspace === undefined) throw new SearchProblem(NOT_HERE);
  return workspace;
}

function createListReadable(deps: EarlierDeps): ReadsRecent["listReadable"] {
  const { api, people } = deps;

  /** Without the optional scope of private channels, Slack lists the public ones. */
  async function channelsOf(team: string, user: string | undefined, signal: AbortSignal): Promise<Body[]> {
    return listChannels(team, user, "public_channel,private_channel", signal).catch((error: unknown) => {
      if (codeOf(error) !== "missing_scope") throw error;
      return listChannels(team, user, "public_channel", signal);
    });
  }

  /** The channels of the bot, or those of a person that the bot is in too or that are public. */
  async function listChannels(team: string, user: string | undefined, types: string, signal: AbortSignal) {
    const found: Body[] = [];
    for (let cursor = "", page = 0; page < MAX_PAGES; page++) {
      const args = {
        types,
        exclude_archived: true,
        limit: PAGE,
        ...(user !== undefined && { user }),
        ...(cursor !== "" && { cursor }),
      };
      const answer = await api.call(team, "users.conversations", args, signal);
      found.push(...toBodies(answer["channels"]));
      cursor = readText(toBody(answer["response_metadata"])["next_cursor"]) ?? "";
      if (cursor === "") break;
    }
    return found;
  }

  return async (which, { author, reply }, signal) => {
    const { team } = readExtra(reply);
    const workspace = await findWorkspace(deps, team, signal);
    const toPlace = (channelId: string, name: string): ReadablePlace => ({
      id: `${PLATFORM}:${team}:${channelId}`,
      name: `#${name}`,
      channelId,
    });
    if (which === "here") {
      const { channelId } = reply;
      if (channelId.startsWith("D")) return [];
      return [toPlace(channelId, (await people.channelName(workspace, channelId)) ?? channelId)];
    }
    try {
      const lists = [undefined, readUserId(author.id)].map((user) => channelsOf(team, user, signal));
      const [own = [], theirs = []] = await Promise.all(lists);
      const ids = new Set(theirs.map(({ id }) => id));
      return own.flatMap(({ id, name }) =>
        typeof id === "string" && ids.has(id) ? [toPlace(id, readText(name) ?? id)] : [],
      );
    } catch (error) {
      if (isRateLimit(error)) throw new SearchProblem(TOO_FAST);
      throw error;
    }
  };
}

/** Messages of the channel itself, newest first. */
interface Top {
  found: Body[];
  gap?: string;
  /** The app has used up the one call that Slack allows it each minute. */
  isSold?: true;
}

function createReadRecent(deps: EarlierDeps): ReadsRecent["readRecent"] {
  const { api, limits } = deps;
  const shared = createSharedLookups();
  /** The workspaces in which Slack lets this app read only a page of 15 messages a minute. */
  const soldTeams = new Set<string>();

  /** Reads back to the start of the range or to the asker's own message, and then on to older messages with replies. */
  async function readTop(
    { workspace, channelId, userId }: Place,
    range: RecentRange,
    signal: AbortSignal,
  ): Promise<Top> {
    const { teamId } = workspace;
    const found: Body[] = [];
    const bounds = { latest: toTs(range.until), oldest: toTs(range.since - THREADS_MS), limit: PAGE };
    /** True if only older messages can follow. Only their threads matter. */
    function isWhole(): boolean {
      return found.some(({ user, ts }) => !isIn(range, ts) || (range.fromOwn && user === userId));
    }

    function toRefusal(): string {
      if (isWhole()) return OLD_THREADS;
      return soldTeams.has(teamId) ? SOLD_CHANNEL : TOO_FAST;
    }

    let cursor: string | undefined;
    for (let page = 0; page < MAX_PAGES; page++) {
      if (!limits.mayRead(teamId, "channels")) return { found, gap: toRefusal() };
      const args = { channel: channelId, ...bounds, ...(cursor !== undefined && { cursor }) };
      try {
        const answer = await api.call(teamId, "conversations.history", args, signal);
        const messages = toBodies(answer["messages"]);
        found.push(...messages);
        cursor = readText(toBody(answer["response_metadata"])["next_cursor"]);
        if (cursor === undefined) return { found };
        if (messages.length <= SOLD_PAGE) {
          soldTeams.add(teamId);
          // Slack would refuse the next calls.
          limits.pause(teamId, "channels");
          limits.pause(teamId, "gaps");
          return { found, isSold: true, gap: isWhole() ? SOLD_THREADS : SOLD };
        }
        if (found.filter(({ ts }) => isIn(range, ts)).length >= range.maxMessages) break;
      } catch (error) {
        if (isAbsence(error)) throw new SearchProblem(NOT_HERE);
        if (!isRateLimit(error)) throw error;
        return { found, gap: toRefusal() };
      }
    }
    return { found, gap: isWhole() ? OLD_THREADS : TOO_MANY };
  }

  async function readReplies({ workspace, channelId }: Place, root: Body, range: RecentRange, signal: AbortSignal) {
    const { teamId } = workspace;
    const bounds = { latest: toTs(range.until), oldest: toTs(range.since), limit: PAGE };
    const args = { channel: channelId, ts: root["ts"], ...bounds };
    if (!limits.mayRead(teamId, "gaps") || !limits.mayRead(teamId, "threads")) return { found: [], gaps: [TOO_FAST] };
    try {
      const answer = await api.call(teamId, "conversations.replies", args, signal);
      const messages = toBodies(answer["messages"]);
      const found = messages.filter(({ ts }) => ts !== root["ts"]);
      if (readText(toBody(answer["response_metadata"])["next_cursor"]) === undefined) return { found, gaps: [] };
      if (messages.length > SOLD_PAGE) return { found, gaps: [LONG_THREAD] };
      limits.pause(teamId, "gaps");
      return { found, gaps: [SOLD_THREAD] };
    } catch (error) {
      signal.throwIfAborted();
      return { found: [], gaps: [isRateLimit(error) ? TOO_FAST : LOST_THREAD] };
    }
  }

  async function toMessages(raw: Body, { workspace, channelId, linkBase, userId }: Place): Promise<RecentMessage[]> {
    const [ts, threadTs] = [readText(raw["ts"]), readText(raw["thread_ts"])];
    const thread = threadTs !== undefined && threadTs !== ts ? `?thread_ts=${threadTs}&cid=${channelId}` : "";
    const link = `${linkBase}/archives/${channelId}/p${ts?.replace(".", "")}${thread}`;
    const isOwn = raw["user"] === userId;
    const concerns = !isOwn && (raw["parent_user_id"] === userId || mentions(readText(raw["text"]) ?? "", userId));
    const more = {
      link,
      ...(threadTs !== undefined && { threadId: threadTs }),
      ...(concerns && { concernsAsker: true as const }),
    };
    return (await toEarlier(raw, channelId, workspace, deps)).map((message) => toRecent(message, more));
  }

  return async (placeId, range, { author, reply }, signal) => {
    const { team } = readExtra(reply);
    const channelId = placeId.split(":")[2] ?? "";
    const workspace = await findWorkspace(deps, team, signal);
    const { url } = await shared(signal, team, () => api.call(team, "auth.test", {}, signal));
    const linkBase = (readText(url) ?? "https://slack.com").replace(/\/+$/, "");
    const place: Place = { workspace, channelId, linkBase, userId: readUserId(author.id) };
    const top = await readTop(place, range, signal);
    const active = top.found
      .filter(({ latest_reply: latest }) => isIn(range, latest))
      .toSorted((one, other) => Number(other["latest_reply"]) - Number(one["latest_reply"]));
    const raws = top.found.filter(({ ts }) => isIn(range, ts));
    const gaps = new Set(top.gap === undefined ? [] : [top.gap]);
    const threads = top.isSold === true ? [] : active;
    if (threads.length > MAX_THREADS) gaps.add(MANY_THREADS);
    const read = await mapBounded(threads.slice(0, MAX_THREADS), THREADS_AT_ONCE, (root) =>
      readReplies(place, root, range, signal),
    );
    for (const thread of read) {
      raws.push(...thread.found);
      for (const gap of thread.gaps) gaps.add(gap);
    }
    return { messages: (await Promise.all(raws.map((raw) => toMessages(raw, place)))).flat(), gaps: [...gaps] };
  };
}

function isIn({ since }: RecentRange, given: unknown): boolean {
  const ts = readText(given);
  return ts !== undefined && timeOf(ts) >= since;
}

function isRateLimit(error: unknown): boolean {
  return error instanceof ApiError && error.retryAfterMs !== undefined;
}

function toTs(at: number): string {
  return (Math.max(1, at) / 1_000).toFixed(6);
}
