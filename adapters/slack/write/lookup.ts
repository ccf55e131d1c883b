import { SinkError } from "../../../src/port/errors.ts";
import type { SlackApi } from "../api/client.ts";
import { ApiError, isUncertain } from "../api/error.ts";
import { createThrottle } from "../api/optional-calls.ts";
import { type Body, readText, toBodies, toBody } from "../api/wire.ts";
import type { Workspace, Workspaces } from "../api/workspaces.ts";
import type { MessagePlace, ToMark } from "../ids.ts";
import { readMark, readMessageFiles } from "./draft.ts";

/**
 * Messages per call. Slack gives commercial apps outside its marketplace no more.
 * https://docs.slack.dev/reference/methods/conversations.replies
 */
const PAGE = 15;
/** Most pages to search. If a thread has more messages since the question, the search stops there. */
const MAX_PAGES = 4;
/** Slack lets an app read messages fifty times a minute. Reading conversations needs the rest. */
const MAX_A_MINUTE = 30;

/** Assumes that this machine's clock is ahead of Slack's by at most this much. */
const MAX_AHEAD_MS = 120_000;

/** The place of a reply: its thread, or the top level of its channel. */
export interface ReplyPlace {
  teamId: string;
  channelId: string;
  threadTs: string | undefined;
  /** The question. Answers are newer. */
  questionTs: string | undefined;
  /** When a command, a press or a scheduled run arrived, in Unix milliseconds of this machine. They have no message. */
  cameAtMs?: number | undefined;
}

function readStart({ questionTs, cameAtMs }: ReplyPlace): string | undefined {
  if (questionTs !== undefined || cameAtMs === undefined) return questionTs;
  return ((cameAtMs - MAX_AHEAD_MS) / 1_000).toFixed(6);
}

export interface Found {
  ts: string;
  /** A stream that the bot started and never finished. It has no mark yet, so its nonce is a guess. */
  isUnfinished: boolean;
  files: readonly Body[];
  /** All files in the message, including those that it shows as images and those that the previous message shared. */
  fileIds: readonly string[];
}

export interface Lookup {
  /**
   * Finds the message of a nonce. A stream gets its nonce only at its end, so an unfinished stream counts as found: a
   * conversation has only one answer at a time.
   */
  findPost(
    place: ReplyPlace,
    nonce: string,
    signal: AbortSignal,
    options?: { isFinished: boolean },
  ): Promise<Found | undefined>;
  findFiles(place: ReplyPlace, names: readonly string[], signal: AbortSignal): Promise<Found | undefined>;
}

/** Undefined if the message is gone. */
export async function readMessage(
  api: SlackApi,
  { teamId, channelId, ts }: MessagePlace,
  signal: AbortSignal,
): Promise<Body | undefined> {
  const range = { oldest: ts, latest: ts, inclusive: true, limit: 1, include_all_metadata: true };
  const { messages } = await api.call(teamId, "conversations.replies", { channel: channelId, ts, ...range }, signal);
  return toBodies(messages).find((one) => one["ts"] === ts);
}

export interface LookupDeps {
  api: SlackApi;
  workspaces: Pick<Workspaces, "find">;
  toMark: ToMark;
  /** Unix milliseconds. */
  now(): number;
}

export function createLookup({ api, workspaces, toMark, now }: LookupDeps): Lookup {
  const throttle = createThrottle(now);

  async function read(teamId: string, method: string, args: Body, signal: AbortSignal): Promise<Body> {
    if (!throttle.take(teamId, MAX_A_MINUTE)) throw toThrottled();
    try {
      return await api.call(teamId, method, args, signal);
    } catch (error) {
      if (!(error instanceof ApiError) || error.retryAfterMs === undefined) throw error;
      throttle.pause(teamId, error.retryAfterMs);
      throw new SinkError("unavailable", error.logMessage, { cause: error });
    }
  }

  /** Undefined if the bot is not installed in that workspace. */
  async function identify(teamId: string, signal: AbortSignal): Promise<Workspace | undefined> {
    try {
      return await workspaces.find(teamId, signal);
    } catch (error) {
      signal.throwIfAborted();
      const isFinal = error instanceof ApiError && error.retryAfterMs === undefined && !isUncertain(error);
      if (isFinal) throw error;
      throw new SinkError("unavailable", "The bot's own id in that workspace is unknown right now.", {
        cause: error,
      });
    }
  }

  async function* readBehind(place: ReplyPlace, signal: AbortSignal): AsyncGenerator<readonly Body[]> {
    const { teamId, channelId, threadTs } = place;
    const oldest = readStart(place);
    const workspace = await identify(teamId, signal);
    if (workspace === undefined) return;
    let cursor = "";
    for (let page = 0; page < MAX_PAGES; page++) {
      const answer = await read(
        teamId,
        threadTs === undefined ? "conversations.history" : "conversations.replies",
        {
          channel: channelId,
          limit: PAGE,
          include_all_metadata: true,
          ...(threadTs !== undefined && { ts: threadTs }),
          ...(oldest !== undefined && { oldest }),
          ...(cursor !== "" && { cursor }),
        },
        signal,
      );
      const messages = toBodies(answer["messages"]);
      yield messages.filter((message) => isOwn(message, workspace) && Number(message["ts"]) > Number(oldest ?? 0));
      cursor = readText(toBody(answer["response_metadata"])["next_cursor"]) ?? "";
      if (cursor === "") return;
    }
  }

  return {
    async findPost(place, nonce, signal, { isFinished = false } = { isFinished: false }) {
      const mark = toMark(nonce);
      let unfinished: Found | undefined;
      for await (const messages of readBehind(place, signal)) {
        const found = messages.find((message) => readMark(message) === mark);
        if (found !== undefined) return toFound(found, false);
        const stream = isFinished ? undefined : messages.findLast((message) => isUnfinished(message));
        if (stream !== undefined) unfinished = toFound(stream, true);
      }
      return unfinished;
    },
    async findFiles(place, names, signal) {
      for await (const messages of readBehind(place, signal)) {
        const found = messages.find((message) => hasFiles(message, names));
        if (found !== undefined) return toFound(found, false);
      }
      return undefined;
    },
  };
}

/** True if the bot wrote the message: Slack names either the app's bot id or the app's user. */
function isOwn({ bot_id, user }: Body, { botId, botUserId }: Workspace): boolean {
  return bot_id === botId || user === botUserId;
}

function isUnfinished(message: Body): boolean {
  return message["streaming_state"] !== undefined && readMark(message) === undefined;
}

function hasFiles(message: Body, names: readonly string[]): boolean {
  const files = toBodies(message["files"]);
  return files.length === names.length && names.every((name, index) => files[index]?.["name"] === name);
}

function toFound(message: Body, isUnfinished: boolean): Found {
  const fileIds = readMessageFiles(message).ids;
  return { ts: String(message["ts"]), isUnfinished, files: toBodies(message["files"]), fileIds };
}

/** Not `rate-limited`, because that would slow down the writes, which have a separate limit. */
function toThrottled(): SinkError {
  const message = "Cannot look for an earlier post right now: Slack's rate limit for reading is used up.";
  return new SinkError("unavailable", message);
}
