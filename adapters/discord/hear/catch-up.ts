import { setTimeout as sleep } from "node:timers/promises";
import { type APIMessage, Routes } from "discord.js";
import type { Logger } from "pino";
import { PATIENT_PAUSES_MS, retry } from "../../../src/concurrency/retry.ts";
import { type Api, read } from "../api/client.ts";
import { ApiError, isUncertain, waitOf } from "../api/error.ts";
import type { Rooms } from "../api/rooms.ts";
import { timeOf } from "../ids.ts";
import type { Message } from "./wording.ts";

/** Older messages stay unanswered, because their authors have probably asked elsewhere. */
const MAX_AGE_MS = 15 * 60_000;
/**
 * Most server channels to read, those with the newest messages first. On a busy server, many channels get newer
 * messages than the one with the question while the bot starts.
 */
const MAX_ROOMS = 500;
/** Discord's maximum per call. */
const PAGE = 100;
const CALL_MS = 10_000;
/** Pauses before each retry of channels that could not be read. The last pause repeats. */
const PAUSES_MS = [1_000, 3_000, 10_000];
/**
 * The bot waits for rate limits up to this long, and repeats this if other calls use up the limit after a wait. The
 * limit over all channels ends sooner.
 */
const SHORT_WAIT_MS = 2_000;
const MAX_WAITS = 20;

export interface CatchUpDeps {
  api: Api;
  rooms: Rooms;
  /** True for the first shard, because only it receives direct messages. */
  hasDirects: boolean;
  /** Ids of direct conversations, which Discord does not list. */
  directChannels(): Promise<readonly string[]>;
  /** `isAnswered`: the bot has already answered the message, so it opens no thread for it. */
  onMessage(message: Message, isAnswered: boolean): void;
  gate: Pick<CatchUpGate, "expect" | "release">;
  botId(): string | undefined;
  log: Logger;
  now(): number;
}

interface MissedRoom {
  channelId: string;
  guildId: string | undefined;
}

/**
 * Reads the messages that users wrote while no process listened, and passes them on like new ones. Messages that were
 * already handled are dropped by their keys. Reads one page per channel, the channels with the newest messages first,
 * and skips messages older than `MAX_AGE_MS`. Does not stop at the last received message, because messages before it
 * can be missing too. Never rejects.
 */
export async function catchUp(deps: CatchUpDeps, signal: AbortSignal): Promise<void> {
  const { rooms, hasDirects, gate, now } = deps;
  const since = now() - MAX_AGE_MS;
  const guildRooms = rooms
    .recent()
    .filter(({ lastMessageId }) => timeOf(lastMessageId) > since)
    .slice(0, MAX_ROOMS);
  gate.expect(false, guildRooms.map(toChannelId));
  const finding = hasDirects ? readDirects(deps, signal) : Promise.resolve([]);
  await Promise.all([
    readRooms(guildRooms, deps, signal),
    finding.then((directRooms) => {
      gate.expect(true, directRooms.map(toChannelId));
      return readRooms(directRooms, deps, signal);
    }),
  ]);
}

function toChannelId({ channelId }: Pick<MissedRoom, "channelId">): string {
  return channelId;
}

/** Retries failed channels after all others, until their messages are too old: no other process reads them. */
async function readRooms(rooms: readonly MissedRoom[], deps: CatchUpDeps, signal: AbortSignal): Promise<void> {
  const { log, now } = deps;
  const until = now() + MAX_AGE_MS;
  let left = rooms;
  for (let round = 0; ; round++) {
    left = await readEach(left, deps, signal);
    if (left.length === 0 || signal.aborted) return;
    if (now() > until) break;
    const pauseMs = PAUSES_MS[Math.min(round, PAUSES_MS.length - 1)];
    await sleep(pauseMs, undefined, { signal, ref: false }).catch(() => {});
  }
  log.warn({ rooms: left.length }, "Could not read some channels for missed messages; these messages stay unanswered.");
}

async function readEach(
  rooms: readonly MissedRoom[],
  { api, botId, onMessage, gate, now, log }: CatchUpDeps,
  signal: AbortSignal,
): Promise<MissedRoom[]> {
  const failed: MissedRoom[] = [];
  for (const room of rooms) {
    if (signal.aborted) return [];
    try {
      const read = () => readRoom(api, room, now() - MAX_AGE_MS, signal);
      // Waits here, because the same rate limit would also refuse all further channels.
      const messages = await retry(
        read,
        { pausesMs: Array<number>(MAX_WAITS).fill(0), mayPass: isShort, askedMs: waitOf, isIdle: true },
        signal,
      );
      const answered = findAnswered(messages, botId());
      for (const message of messages) onMessage(message, answered.has(message.id));
    } catch (error) {
      if (signal.aborted) return [];
      log.debug({ err: error, channelId: room.channelId }, "Could not read a channel for missed messages.");
      if (mayPass(error)) failed.push(room);
    } finally {
      gate.release(room.channelId);
    }
  }
  return failed;
}

function isShort(error: unknown): boolean {
  return (waitOf(error) ?? Infinity) < SHORT_WAIT_MS;
}

function mayPass(error: unknown): boolean {
  return isUncertain(error) || (error instanceof ApiError && error.status === 429);
}

async function readRoom(
  api: Api,
  { channelId, guildId }: MissedRoom,
  since: number,
  signal: AbortSignal,
): Promise<Message[]> {
  // Reads the newest page. A page with `after` starts at that time and can miss the newest messages.
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(CALL_MS)]);
  const page = await read<APIMessage[]>(api, Routes.channelMessages(channelId), bounded, { limit: String(PAGE) });
  const messages = page
    .filter(({ id }) => timeOf(id) > since)
    .map((message) => ({ ...message, ...(guildId !== undefined && { guild_id: guildId }) }));
  return messages.sort((a, b) => (BigInt(a.id) < BigInt(b.id) ? -1 : 1));
}

function findAnswered(messages: readonly Message[], botId: string | undefined): ReadonlySet<string | undefined> {
  const own = messages.filter(({ author }) => author.id === botId);
  const opened = messages.filter(
    ({ thread }) => thread !== undefined && "owner_id" in thread && thread.owner_id === botId,
  );
  return new Set([
    ...own.map(({ message_reference: reference }) => reference?.message_id),
    ...opened.map(({ id }) => id),
  ]);
}

async function readDirects({ directChannels, log }: CatchUpDeps, signal: AbortSignal): Promise<MissedRoom[]> {
  const onFailure = (error: unknown) =>
    log.warn(
      { err: error },
      "Could not read the list of direct conversations; retrying. Missed direct messages are read after that.",
    );
  try {
    const ids = await retry(directChannels, { pausesMs: PATIENT_PAUSES_MS, onRetry: onFailure, isIdle: true }, signal);
    return ids.map((channelId) => ({ channelId, guildId: undefined }));
  } catch (error) {
    if (!signal.aborted) log.warn({ err: error }, "Missed messages in direct conversations stay unanswered.");
    return [];
  }
}

/** New events wait at most this long for missed messages. After that, the bot may answer out of order. */
const LONGEST_MS = 5_000;

/** Keeps each channel's events in order after a session that could not be resumed: new events wait for missed ones. */
export interface CatchUpGate {
  /** Call this when a session starts. From then on all events wait until `expect` names the channels to read. */
  begin(): void;
  /**
   * Names the channels that are being read: direct ones if `isDirect`, channels of servers otherwise. Events from other
   * channels of that kind stop waiting.
   */
  expect(isDirect: boolean, channelIds: readonly string[]): void;
  /** Call this when a channel's missed messages were passed on, or could not be read. */
  release(channelId: string): void;
  /** Runs the task at once, or after its channel is released, in order. */
  take(channel: { id: string; isDirect: boolean }, task: () => void): void;
}

interface Waiting {
  isDirect: boolean;
  tasks: Array<() => void>;
}

export function createCatchUpGate(longestMs = LONGEST_MS): CatchUpGate {
  const waiting = new Map<string, Waiting>();
  const released = new Set<string>();
  /** The channels that are being read, by `isDirect`; no entry until they are named. Undefined if no events wait. */
  let expected: Map<boolean, ReadonlySet<string>> | undefined;
  let timer: NodeJS.Timeout | undefined;

  function isHeld(id: string, isDirect: boolean): boolean {
    if (expected === undefined || released.has(id)) return false;
    return expected.get(isDirect)?.has(id) ?? true;
  }

  function letGo(): void {
    for (const [id, { isDirect, tasks }] of waiting) {
      if (isHeld(id, isDirect)) continue;
      waiting.delete(id);
      for (const task of tasks) task();
    }
  }

  function end(): void {
    expected = undefined;
    letGo();
  }

  return {
    begin() {
      clearTimeout(timer);
      timer = setTimeout(end, longestMs).unref();
      released.clear();
      expected = new Map();
    },
    expect(isDirect, channelIds) {
      expected?.set(isDirect, new Set(channelIds));
      letGo();
    },
    release(channelId) {
      released.add(channelId);
      letGo();
    },
    take({ id, isDirect }, task) {
      if (!isHeld(id, isDirect)) return task();
      const held = waiting.get(id) ?? { isDirect, tasks: [] };
      held.tasks.push(task);
      waiting.set(id, held);
    },
  };
}
