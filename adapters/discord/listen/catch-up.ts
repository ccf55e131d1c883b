import { type APIMessage, Routes } from "discord.js";
import type { Logger } from "pino";
import type { Api } from "../api/client.ts";
import type { Rooms } from "../api/rooms.ts";
import { timeOf } from "../ids.ts";
import type { Message } from "./wording.ts";

/** Somebody whose question is older than this has asked elsewhere meanwhile. */
const MAX_AGE_MS = 15 * 60_000;
const MAX_ROOMS = 30;
const MAX_MESSAGES = 200;
const PAGE = 50;
const CALL_MS = 10_000;

export interface CatchUpDeps {
  api: Api;
  rooms: Rooms;
  shard: number;
  /** Direct conversations, which Discord does not list. */
  directChannels(): Promise<readonly string[]>;
  /** `isAnswered`: what it asks was heard before, and its place is settled. */
  onMessage(message: Message, isAnswered: boolean): void;
  botId(): string | undefined;
  log: Logger;
  now(): number;
}

/**
 * Reads what was written while nobody listened, and hands it over as if it came now: what was taken already is
 * dropped by its key. Bounded by age and number, newest rooms first. Never rejects.
 */
export async function catchUp(deps: CatchUpDeps, signal: AbortSignal): Promise<void> {
  const { rooms, shard, now, log, botId } = deps;
  const since = now() - MAX_AGE_MS;
  const guildRooms = rooms.recent(shard).filter(({ lastMessageId }) => timeOf(lastMessageId) > since);
  // Direct messages all come through the first shard.
  const directChannels = (shard === 0 ? await readDirects(deps) : []).map((channelId) => ({
    channelId,
    guildId: undefined,
  }));
  const found = [...guildRooms, ...directChannels].slice(0, MAX_ROOMS);
  let left = MAX_MESSAGES;
  for (const room of found) {
    if (signal.aborted || left <= 0) return;
    try {
      const messages = await readRoom(deps.api, room, since, Math.min(left, PAGE), signal);
      left -= messages.length;
      const answered = findAnswered(messages, botId());
      for (const message of messages) deps.onMessage(message, answered.has(message.id));
    } catch (error) {
      if (signal.aborted) return;
      log.debug({ err: error, channelId: room.channelId }, "A channel could not be read for what was missed.");
    }
  }
}

async function readRoom(
  api: Api,
  { channelId, guildId }: { channelId: string; guildId: string | undefined },
  since: number,
  limit: number,
  signal: AbortSignal,
): Promise<Message[]> {
  // The newest ones: what Discord gives after a time begins there, and may end before the bot went away.
  const query = new URLSearchParams({ limit: String(limit) });
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(CALL_MS)]);
  const { data } = await api.call({ method: "GET", route: Routes.channelMessages(channelId), query }, bounded);
  const messages = (data as APIMessage[])
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

async function readDirects({ directChannels, log }: CatchUpDeps): Promise<readonly string[]> {
  try {
    return await directChannels();
  } catch (error) {
    log.warn(
      { err: error },
      "The list of direct conversations could not be read; what was missed there stays unanswered.",
    );
    return [];
  }
}
