import { SinkError } from "../../../src/port/errors.ts";
import type { SlackAnswer, SlackApi, SlackArguments } from "../api/client.ts";
import { isUncertain, SlackApiError } from "../api/error.ts";
import { createThrottle } from "../api/throttle.ts";
import type { Workspace, Workspaces } from "../api/workspaces.ts";
import type { MessagePlace, ToMark } from "../ids.ts";
import { type Block, readMark, readMessageFiles } from "./blocks.ts";

/** Apps sold outside the marketplace get no more than this at once. */
const PAGE = 15;
/** A thread in which more than this was said since the question is not searched to its end. */
const MAX_PAGES = 4;
/** Slack lets an app read messages fifty times a minute; the rest is for reading what people said. */
const MAX_A_MINUTE = 30;

type SlackMessage = Readonly<Record<string, unknown>>;

/** The place of a reply: its thread, or the top level of its channel. */
export interface ReplyPlace {
  teamId: string;
  channelId: string;
  threadTs: string | undefined;
  /** The question: answers stand behind it. */
  questionTs: string | undefined;
}

/** A message of ours that was found. */
export interface Found {
  ts: string;
  /** It was begun as a stream and never finished by us: what it was made for is only guessed. */
  isUnfinished: boolean;
  files: readonly SlackMessage[];
  /** All files that belong to it, also those that it shows as pictures or that a message before it brought. */
  fileIds: readonly string[];
}

export interface Lookup {
  /**
   * The message that was posted with a nonce. A stream carries its nonce only when it is over, so one that nobody
   * finished is taken for it: a conversation has one answer at a time.
   */
  findPost(
    place: ReplyPlace,
    nonce: string,
    signal: AbortSignal,
    options?: { isFinished: boolean },
  ): Promise<Found | undefined>;
  /** The message that brought the files of these names and no others. */
  findFiles(place: ReplyPlace, names: readonly string[], signal: AbortSignal): Promise<Found | undefined>;
}

/** One message as it stands; undefined where it is gone. */
export async function readMessage(
  api: SlackApi,
  { teamId, channelId, ts }: MessagePlace,
  signal: AbortSignal,
): Promise<Block | undefined> {
  const range = { oldest: ts, latest: ts, inclusive: true, limit: 1, include_all_metadata: true };
  const { messages } = await api.call(teamId, "conversations.replies", { channel: channelId, ts, ...range }, signal);
  return Array.isArray(messages) ? (messages as Block[]).find((one) => one["ts"] === ts) : undefined;
}

export interface LookupDeps {
  api: SlackApi;
  /** Tells what the bot wrote itself from what other apps wrote. */
  workspaces: Pick<Workspaces, "find">;
  toMark: ToMark;
  /** Unix milliseconds. */
  now(): number;
}

export function createLookup({ api, workspaces, toMark, now }: LookupDeps): Lookup {
  const throttle = createThrottle(now);

  async function read(teamId: string, method: string, args: SlackArguments, signal: AbortSignal): Promise<SlackAnswer> {
    if (!throttle.take(teamId, MAX_A_MINUTE)) throw toThrottled();
    try {
      return await api.call(teamId, method, args, signal);
    } catch (error) {
      if (!(error instanceof SlackApiError) || error.retryAfterMs === undefined) throw error;
      throttle.pause(teamId, error.retryAfterMs);
      throw new SinkError("unavailable", error.logMessage, { cause: error });
    }
  }

  /** The bot as it is in that workspace; undefined where it is not installed. */
  async function identify(teamId: string, signal: AbortSignal): Promise<Workspace | undefined> {
    try {
      return await workspaces.find(teamId, signal);
    } catch (error) {
      signal.throwIfAborted();
      const isFinal = error instanceof SlackApiError && error.retryAfterMs === undefined && !isUncertain(error);
      if (isFinal) throw error;
      throw new SinkError("unavailable", "Who the bot is in that workspace cannot be told now.", { cause: error });
    }
  }

  /** The bot's own messages behind the question, in pages. */
  async function* readBehind(place: ReplyPlace, signal: AbortSignal): AsyncGenerator<readonly SlackMessage[]> {
    const { teamId, channelId, threadTs, questionTs } = place;
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
          ...(questionTs !== undefined && { oldest: questionTs }),
          ...(cursor !== "" && { cursor }),
        },
        signal,
      );
      const messages = (answer["messages"] ?? []) as SlackMessage[];
      yield messages.filter((message) => isOwn(message, workspace) && Number(message["ts"]) > Number(questionTs ?? 0));
      cursor = (answer["response_metadata"] as { next_cursor?: string } | undefined)?.next_cursor ?? "";
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

/** Slack itself says who wrote a message; where its app is not told, the user that the app writes as is. */
function isOwn({ bot_id, user }: SlackMessage, { botId, botUserId }: Workspace): boolean {
  return bot_id === botId || user === botUserId;
}

function isUnfinished(message: SlackMessage): boolean {
  return message["streaming_state"] !== undefined && readMark(message) === undefined;
}

function hasFiles(message: SlackMessage, names: readonly string[]): boolean {
  const files = filesOf(message);
  return files.length === names.length && names.every((name, index) => files[index]?.["name"] === name);
}

function filesOf(message: SlackMessage): readonly SlackMessage[] {
  return Array.isArray(message["files"]) ? (message["files"] as SlackMessage[]) : [];
}

function toFound(message: SlackMessage, isUnfinished: boolean): Found {
  const fileIds = readMessageFiles(message).ids;
  return { ts: String(message["ts"]), isUnfinished, files: filesOf(message), fileIds };
}

/** No refusal for the rate: what is written is limited apart. */
function toThrottled(): SinkError {
  const message = "Whether this was posted already cannot be looked up at the moment: Slack allows too few looks.";
  return new SinkError("unavailable", message);
}
