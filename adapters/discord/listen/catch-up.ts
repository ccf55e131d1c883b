import { setTimeout as sleep } from "node:timers/promises";
import { type APIMessage, Routes } from "discord.js";
import type { Logger } from "pino";
import { PATIENT_PAUSES_MS, retry } from "../../../src/concurrency/retry.ts";
import { type Api, read } from "../api/client.ts";
import { ApiError } from "../api/error.ts";
import type { Rooms } from "../api/rooms.ts";
import { timeOf } from "../ids.ts";
import type { CatchUpGate } from "./catch-up-gate.ts";
import type { Message } from "./wording.ts";

/** Somebody whose question is older than this has asked elsewhere meanwhile. */
const MAX_AGE_MS = 15 * 60_000;
/**
 * Most server channels that are read, one after the other, those with the newest messages first. Where many are busy, one
 * in which somebody asked falls behind the others in the seconds that a start takes.
 */
const MAX_ROOMS = 500;
/** The most that Discord gives at once. */
const PAGE = 100;
const CALL_MS = 10_000;
/** Pauses before channels that could not be read are tried again; the last one repeats. */
const PAUSES_MS = [1_000, 3_000, 10_000];
/** A rate limit over all channels ends sooner than this and is waited for; other calls may use its end up first. */
const SHORT_WAIT_MS = 2_000;
const MAX_WAITS = 20;

export interface CatchUpDeps {
  api: Api;
  rooms: Rooms;
  shard: number;
  /** Direct conversations, which Discord does not list. */
  directChannels(): Promise<readonly string[]>;
  /** `isAnswered`: the bot has answered it, so its answer needs no thread. */
  onMessage(message: Message, isAnswered: boolean): void;
  /** Holds new events of a channel back until it has been read. */
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
 * Reads the messages written while nobody listened, and hands them over as if they came now: those taken before are
 * dropped by their key. Bounded by age, by the number of channels, newest first, and by one page each. The last message
 * heard before is no bound, because it does not tell how much was missed. Never rejects.
 */
export async function catchUp(deps: CatchUpDeps, signal: AbortSignal): Promise<void> {
  const { rooms, shard, gate, now } = deps;
  const since = now() - MAX_AGE_MS;
  const guildRooms = rooms
    .recent(shard)
    .filter(({ lastMessageId }) => timeOf(lastMessageId) > since)
    .slice(0, MAX_ROOMS);
  gate.expect(false, guildRooms.map(toChannelId));
  // Direct messages all come through the first shard. They and the servers' channels are read side by side.
  const finding = shard === 0 ? readDirects(deps, signal) : Promise.resolve([]);
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

/**
 * Reads rooms. Those that could not be read are tried again after all the others, until their messages would be too
 * old, because no other process reads them.
 */
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
  log.warn({ rooms: left.length }, "Channels could not be read for what was missed; it stays unanswered.");
}

/** Resolves to the rooms that may be readable later. */
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
      // The next room would be refused as well, and all of them be left behind.
      const messages = await retry(
        read,
        { pausesMs: Array<number>(MAX_WAITS).fill(0), mayPass: isShort, askedMs: waitOf, isIdle: true },
        signal,
      );
      const answered = findAnswered(messages, botId());
      for (const message of messages) onMessage(message, answered.has(message.id));
    } catch (error) {
      if (signal.aborted) return [];
      log.debug({ err: error, channelId: room.channelId }, "A channel could not be read for what was missed.");
      if (mayPass(error)) failed.push(room);
    } finally {
      gate.release(room.channelId);
    }
  }
  return failed;
}

function waitOf(error: unknown): number | undefined {
  return error instanceof ApiError ? error.retryAfterMs : undefined;
}

function isShort(error: unknown): boolean {
  return (waitOf(error) ?? Infinity) < SHORT_WAIT_MS;
}

function mayPass(error: unknown): boolean {
  return !(error instanceof ApiError) || error.status === 429 || error.status >= 500;
}

async function readRoom(
  api: Api,
  { channelId, guildId }: MissedRoom,
  since: number,
  signal: AbortSignal,
): Promise<Message[]> {
  // The newest page: one asked for by `after` begins at that time and may end before the bot went away.
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(CALL_MS)]);
  const page = await read<APIMessage[]>(api, Routes.channelMessages(channelId), bounded, { limit: String(PAGE) });
  const messages = page
    .filter(({ id }) => timeOf(id) > since)
    .map((message) => ({ ...message, ...(guildId !== undefined && { guild_id: guildId }) }));
  return messages.sort((a, b) => (BigInt(a.id) < BigInt(b.id) ? -1 : 1));
}

/** The messages that the bot points at with an answer, or opened a thread from. */
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
    log.warn({ err: error }, "The list of direct conversations could not be read; what was missed there waits for it.");
  try {
    const ids = await retry(directChannels, { pausesMs: PATIENT_PAUSES_MS, onRetry: onFailure, isIdle: true }, signal);
    return ids.map((channelId) => ({ channelId, guildId: undefined }));
  } catch (error) {
    if (!signal.aborted) log.warn({ err: error }, "What was missed in direct conversations stays unanswered.");
    return [];
  }
}
