/** Lists and reads the channels that a person can catch up on. */
import type { Adapter } from "../../../src/port/adapter.ts";
import { SearchProblem } from "../../../src/port/errors.ts";
import type { ReadablePlace, RecentMessage, RecentRange } from "../../../src/port/events.ts";
import { readExtra } from "../address.ts";
import { ApiError, codeOf } from "../api/error.ts";
import { type Body, readText, toBodies, toBody } from "../api/wire.ts";
import type { Workspace } from "../api/workspaces.ts";
import { PLATFORM, readUserId, timeOf } from "../ids.ts";
import { isAbsence, NOT_HERE } from "./access.ts";
import { type EarlierDeps, PAGE, SOLD_PAGE, toEarlier } from "./earlier.ts";
import { mentions } from "./wording.ts";

/** Older messages whose threads can have new replies: Slack lists no threads. */
const THREADS_MS = 7 * 86_400_000;
const MAX_PAGES = 4;
const MAX_THREADS = 20;
const THREADS_AT_ONCE = 4;

const SOLD = "Slack lets this app read only 15 messages a minute, so I read only the newest ones.";
const TOO_FAST = "I've reached Slack's reading limit, so some messages are missing. Try again in a minute.";
const TOO_MANY = "I couldn't read every message; the ones I missed are older.";
const LONG_THREAD = "I couldn't read all of a long thread; its newest replies are missing.";
const MANY_THREADS = `In each channel, I read only the ${MAX_THREADS} most recently active threads.`;

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

function createReadRecent(deps: EarlierDeps): ReadsRecent["readRecent"] {
  const { api } = deps;

  /** Newest first, until the first message of the range or of the asker. Includes older messages with newer replies. */
  async function readTop({ workspace, channelId, userId }: Place, range: RecentRange, signal: AbortSignal) {
    const found: Body[] = [];
    let cursor: string | undefined;
    const bounds = { latest: toTs(range.until), oldest: toTs(range.since - THREADS_MS), limit: PAGE };
    for (let page = 0; page < MAX_PAGES; page++) {
      const args = { channel: channelId, ...bounds, ...(cursor !== undefined && { cursor }) };
      try {
        const answer = await api.call(workspace.teamId, "conversations.history", args, signal);
        const messages = toBodies(answer["messages"]);
        found.push(...messages);
        cursor = readText(toBody(answer["response_metadata"])["next_cursor"]);
        const hasOwn = range.fromOwn && messages.some(({ user }) => user === userId);
        if (cursor === undefined || hasOwn) return { found };
        if (found.length >= range.maxMessages) return { found, gap: TOO_MANY };
        if (messages.length <= SOLD_PAGE) return { found, gap: SOLD };
      } catch (error) {
        if (isAbsence(error)) throw new SearchProblem(NOT_HERE);
        if (!isRateLimit(error)) throw error;
        return { found, gap: found.length === 0 ? TOO_FAST : SOLD };
      }
    }
    return { found, gap: TOO_MANY };
  }

  async function readReplies({ workspace, channelId }: Place, root: Body, range: RecentRange, signal: AbortSignal) {
    const bounds = { latest: toTs(range.until), oldest: toTs(range.since), limit: PAGE };
    const args = { channel: channelId, ts: root["ts"], ...bounds };
    try {
      const answer = await api.call(workspace.teamId, "conversations.replies", args, signal);
      const found = toBodies(answer["messages"]).filter(({ ts }) => ts !== root["ts"]);
      const isPartial = readText(toBody(answer["response_metadata"])["next_cursor"]) !== undefined;
      return { found, ...(isPartial && { gap: found.length < SOLD_PAGE ? SOLD : LONG_THREAD }) };
    } catch (error) {
      if (!isRateLimit(error)) throw error;
      return { found: [], gap: TOO_FAST };
    }
  }

  async function toRecent(raw: Body, { workspace, channelId, linkBase, userId }: Place): Promise<RecentMessage[]> {
    const [ts, threadTs] = [readText(raw["ts"]), readText(raw["thread_ts"])];
    const thread = threadTs !== undefined && threadTs !== ts ? `?thread_ts=${threadTs}&cid=${channelId}` : "";
    const link = `${linkBase}/archives/${channelId}/p${ts?.replace(".", "")}${thread}`;
    const concerns = raw["parent_user_id"] === userId || mentions(readText(raw["text"]) ?? "", userId);
    const isOwn = raw["user"] === userId;
    return (await toEarlier(raw, channelId, workspace, deps)).map(({ attachments, isRoot: _isRoot, ...message }) => ({
      ...message,
      text: message.text || attachments.map(({ name }) => name).join(", "),
      link,
      ...(threadTs !== undefined && { threadId: threadTs }),
      ...(concerns && !isOwn && { concernsAsker: true as const }),
    }));
  }

  return async (placeId, range, { author, reply }, signal) => {
    const { team } = readExtra(reply);
    const channelId = placeId.split(":")[2] ?? "";
    const workspace = await findWorkspace(deps, team, signal);
    const { url } = await api.call(team, "auth.test", {}, signal);
    const linkBase = (readText(url) ?? "https://slack.com").replace(/\/+$/, "");
    const place: Place = { workspace, channelId, linkBase, userId: readUserId(author.id) };
    const top = await readTop(place, range, signal);
    const oldest = range.since;
    const active = top.found
      .filter(({ latest_reply: latest }) => timeOf(readText(latest) ?? "0") >= oldest)
      .toSorted((one, other) => Number(other["latest_reply"]) - Number(one["latest_reply"]));
    const gaps = new Set(top.gap === undefined ? [] : [top.gap]);
    if (active.length > MAX_THREADS) gaps.add(MANY_THREADS);
    const raws = top.found.filter(({ ts }) => timeOf(readText(ts) ?? "0") >= oldest).slice(0, range.maxMessages);
    // An app that may read once a minute has just done so.
    const threads = top.gap === undefined || top.gap === TOO_MANY ? active.slice(0, MAX_THREADS) : [];
    for (let at = 0; at < threads.length; at += THREADS_AT_ONCE) {
      const some = threads.slice(at, at + THREADS_AT_ONCE);
      const read = await Promise.all(some.map((root) => readReplies(place, root, range, signal)));
      for (const { found, gap } of read) {
        raws.push(...found.slice(-range.maxMessages));
        if (gap !== undefined) gaps.add(gap);
      }
    }
    const messages = (await Promise.all(raws.map((raw) => toRecent(raw, place)))).flat();
    return { messages, ...(gaps.size > 0 && { gap: [...gaps].join(" ") }) };
  };
}

function isRateLimit(error: unknown): boolean {
  return error instanceof ApiError && error.retryAfterMs !== undefined;
}

function toTs(at: number): string {
  return (Math.max(1, at) / 1_000).toFixed(6);
}
