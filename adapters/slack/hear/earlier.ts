import type { Adapter } from "../../../src/port/adapter.ts";
import type { EarlierMessage, ReplyAddress } from "../../../src/port/events.ts";
import { readExtra } from "../address.ts";
import type { SlackApi } from "../api/client.ts";
import { ApiError, codeOf } from "../api/error.ts";
import { createThrottle } from "../api/optional-calls.ts";
import { type Body, readText, toBodies, toBody } from "../api/wire.ts";
import type { Workspace, Workspaces } from "../api/workspaces.ts";
import { PLATFORM, readMessageId, timeOf, toPersonId } from "../ids.ts";
import { createMayShow } from "./access.ts";
import { type InboundDeps, messageIdOf, readAnyMessage, type SlackMessage, toContent } from "./inbound.ts";

/** Slack's maximum for one call. */
export const PAGE = 999;
/**
 * A commercial app outside Slack's marketplace gets at most this many messages, and only once a minute.
 * https://docs.slack.dev/reference/methods/conversations.replies
 */
export const SOLD_PAGE = 15;
const MAX_PAGES = 5;
/** The time limit for all pages after the first. When it is over, the bot uses the pages that it has. */
const PAGES_MS = 3_000;
/**
 * Below Slack's limits for each workspace. The smaller one is for reading the messages since the last question, or the
 * threads that a person missed, and leaves calls for reading whole threads.
 */
const MAX_A_MINUTE = { gaps: 30, threads: 45, channels: 45 };
type ReadKind = keyof typeof MAX_A_MINUTE;
const MINUTE_MS = 60_000;
/** The largest difference between this machine's clock and Slack's. */
const CLOCK_SKEW_MS = 60_000;

export interface EarlierDeps extends InboundDeps {
  api: Pick<SlackApi, "call">;
  workspaces: Workspaces;
  limits: ReadLimits;
  now(): number;
}

/** Counts the calls that read messages. */
export interface ReadLimits {
  /** Counts a read. Returns false if there were too many in the last minute. */
  mayRead(team: string, what: ReadKind): boolean;
  /** For a minute, `mayRead` returns false. */
  pause(team: string, what: ReadKind): void;
}

export function createReadLimits(now: () => number): ReadLimits {
  const throttle = createThrottle(now);
  return {
    mayRead: (team, what) => throttle.take(`${team} ${what}`, MAX_A_MINUTE[what]),
    pause: (team, what) => throttle.pause(`${team} ${what}`, MINUTE_MS),
  };
}

/** Rejects at once while a rate limit for such calls lasts. */
export type ReadsEarlier = Required<Pick<Adapter, "readEarlier" | "readChannel" | "mayShow" | "readLinked">>;

interface LastMessages {
  workspace: Workspace;
  channelId: string;
  latest: string;
  maxMessages: number;
}

interface Thread {
  team: string;
  channel: string;
  ts: string;
  latest?: string;
  oldest?: string;
}

/** A link to a message, as Slack's menus create it. Its time is in microseconds. */
const LINK = /^https?:\/\/[^/]+\/archives\/(\w+)\/p(\d{4,})(\d{6})(?:\?(.*))?$/;

export function createReadsEarlier(deps: EarlierDeps): ReadsEarlier {
  const { api, workspaces, limits, now } = deps;
  const { mayRead } = limits;

  /** Slack lists the thread's first message and then the others, oldest first. */
  async function readThread({ team, ...range }: Thread, signal: AbortSignal) {
    const bounded = AbortSignal.any([signal, AbortSignal.timeout(PAGES_MS)]);
    const found: Body[] = [];
    let cursor: string | undefined;
    for (let page = 0; page < MAX_PAGES; page++) {
      const args = { ...range, limit: PAGE, ...(cursor !== undefined && { cursor }) };
      try {
        const answer = await api.call(team, "conversations.replies", args, page === 0 ? signal : bounded);
        const messages = toBodies(answer["messages"]);
        found.push(...messages);
        cursor = readText(toBody(answer["response_metadata"])["next_cursor"]);
        if (cursor === undefined) return { found, isPartial: false };
        if (messages.length <= SOLD_PAGE) {
          limits.pause(team, "gaps");
          break;
        }
      } catch (error) {
        if (page === 0) throw error;
        break;
      }
    }
    return { found, isPartial: true };
  }

  const mayShow = createMayShow(deps);

  const { readLast, readLooked } = createReadLast({ ...deps, mayShow });

  return {
    mayShow,
    async readLinked(link, maxMessages, to, signal) {
      const { team } = readExtra(to.reply);
      const [, channelId, seconds, micros, query] = LINK.exec(link) ?? [];
      if (channelId === undefined || !(await mayShow(`${PLATFORM}:${team}:${channelId}`, to, signal))) return undefined;
      const workspace = await workspaces.find(team, signal);
      if (workspace === undefined || !mayRead(team, "threads")) return undefined;
      const ts = new URLSearchParams(query).get("thread_ts") ?? `${seconds}.${micros}`;
      const { found } = await readThread({ team, channel: channelId, ts }, signal);
      const [root, ...replies] = found;
      const shown = root === undefined ? [] : [root, ...replies.slice(1 - maxMessages)];
      return (await Promise.all(shown.map((raw) => toEarlier(raw, channelId, workspace, deps)))).flat();
    },
    async readEarlier({ messageId, reply, scheduled }, { since, maxMessages }, signal) {
      const { threadId, channelId } = reply;
      // A scheduled run has no message, so it reads everything up to now.
      const ts = scheduled === undefined ? readMessageId(messageId)?.ts : latestNow(now);
      if (threadId === undefined || ts === undefined || ts === threadId) return { messages: [] };
      const { team } = readExtra(reply);
      const workspace = await workspaces.find(team, signal);
      const isWhole = since === undefined;
      if (workspace === undefined) return { messages: [] };
      if (!(isWhole || mayRead(team, "gaps")) || !mayRead(team, "threads")) return { messages: [], isPartial: true };
      const oldest = isWhole ? {} : { oldest: (since / 1_000).toFixed(6) };
      const range = { team, channel: channelId, ts: threadId, latest: ts, ...oldest };
      const { found, isPartial } = await readThread(range, signal);
      const before = found.filter((raw) => Number(raw["ts"]) < Number(ts));
      const [root, replies] = [
        before.filter((raw) => raw["ts"] === threadId),
        before.filter((raw) => raw["ts"] !== threadId),
      ];
      const newest = isWhole ? [...root, ...replies.slice(-maxMessages)] : replies.slice(-maxMessages);
      const messages = (await Promise.all(newest.map((raw) => toEarlier(raw, channelId, workspace, deps)))).flat();
      return {
        messages: messages
          .filter(({ by, at }) => isWhole || (by !== "bot" && at >= since))
          .map((one) => (one.messageId.endsWith(`:${threadId}`) ? { ...one, isRoot: true as const } : one)),
        ...((isPartial || replies.length > maxMessages) && { isPartial: true as const }),
      };
    },

    async readChannel(reply, messageIds, maxMessages, signal) {
      const { threadId, channelId } = reply;
      if (channelId.startsWith("D")) return readLooked(reply, maxMessages, signal);
      const isTop = messageIds.some(
        (id) => readMessageId(id)?.ts === threadId && readMessageId(id)?.channelId === channelId,
      );
      // A reply without a thread is at the top level.
      const latest = threadId === undefined ? latestNow(now) : threadId;
      if (threadId !== undefined && !isTop) return [];
      const { team } = readExtra(reply);
      const workspace = await workspaces.find(team, signal);
      if (workspace === undefined || !mayRead(team, "channels")) return [];
      return readLast({ workspace, channelId, latest, maxMessages }, signal);
    },
  };
}

/** A `ts` later than every existing message. */
function latestNow(now: () => number): string {
  return ((now() + CLOCK_SKEW_MS) / 1_000).toFixed(6);
}

interface ReadLastDeps extends EarlierDeps {
  mayShow: ReadsEarlier["mayShow"];
}

function createReadLast(deps: ReadLastDeps) {
  const { api, workspaces, now, mayShow } = deps;
  const { mayRead } = deps.limits;

  async function readLast({ workspace, channelId, latest, maxMessages }: LastMessages, signal: AbortSignal) {
    const range = { channel: channelId, latest, limit: maxMessages };
    const answer = await api.call(workspace.teamId, "conversations.history", range, signal).catch((error: unknown) => {
      if (error instanceof ApiError && error.retryAfterMs !== undefined) return {};
      throw error;
    });
    const found = toBodies(toBody(answer)["messages"]);
    // Slack lists the newest first.
    const before = found.filter(({ ts }) => Number(ts) < Number(latest)).slice(0, maxMessages);
    return (await Promise.all(before.map((raw) => toEarlier(raw, channelId, workspace, deps)))).flat().toReversed();
  }

  /** Reads the channel that the person has open next to the pane, if the person and the bot can read it. */
  async function readLooked(reply: ReplyAddress, maxMessages: number, signal: AbortSignal): Promise<EarlierMessage[]> {
    const { team, user, recipientTeam, lookingAt } = readExtra(reply);
    if (lookingAt === undefined || user === undefined || lookingAt === reply.channelId) return [];
    const workspace = await workspaces.find(team, signal);
    if (workspace === undefined) return [];
    const author = { id: toPersonId(workspace, user, recipientTeam), name: user };
    const place = `${PLATFORM}:${team}:${lookingAt}`;
    if (!(await mayShow(place, { author, reply }, signal)) || !mayRead(team, "channels")) return [];
    const latest = latestNow(now);
    const last = { workspace, channelId: lookingAt, latest, maxMessages };
    const messages = await readLast(last, signal).catch((error: unknown) => {
      // People can open a public channel that the bot is not in.
      if (codeOf(error) === "not_in_channel") return [];
      throw error;
    });
    const [first] = messages;
    if (first === undefined) return [];
    const name = await deps.people.channelName(workspace, lookingAt);
    const text = `The user is looking at the channel #${name ?? lookingAt} while asking. Its latest messages:`;
    const notice: EarlierMessage = {
      messageId: `${place}:looked`,
      author: { id: `${PLATFORM}:${team}`, name: "Slack" },
      text,
      attachments: [],
      at: first.at,
      by: "app",
    };
    return [notice, ...messages];
  }

  return { readLast, readLooked };
}

/** Empty for Slack's own notices. */
export async function toEarlier(
  raw: Body,
  channelId: string,
  workspace: Workspace,
  deps: InboundDeps,
): Promise<EarlierMessage[]> {
  const message = readAnyMessage(raw, { channelId, channelType: undefined }, workspace);
  if (message === undefined) return [];
  const [content, author] = await Promise.all([toContent(message, deps, false), authorOf(message, deps)]);
  const by = message.isOwn ? "bot" : message.isBot ? "app" : undefined;
  const at = Math.floor(timeOf(message.ts));
  return [{ messageId: messageIdOf(message), author, ...content, at, ...(by !== undefined && { by }) }];
}

/** For a message from an app, the event contains everything that Slack shows of its author. */
async function authorOf(message: SlackMessage, { people }: InboundDeps) {
  const { workspace, userId, userName, userTeam, isBot } = message;
  if (!isBot) return people.toAuthor(workspace, userId, { name: userName, team: userTeam });
  return { id: toPersonId(workspace, userId, userTeam), name: userName ?? "An app" };
}
