import { createHash } from "node:crypto";

export const PLATFORM = "discord";

/** Discord's ids start at this time, in Unix milliseconds. */
const EPOCH_MS = 1_420_070_400_000;
const TIME_SHIFT = 22n;

export interface MessagePlace {
  channelId: string;
  messageId: string;
}

/** A message's id in the bot's format. Includes the channel, which every write needs too. */
export function toMessageId({ channelId, messageId }: MessagePlace): string {
  return `${PLATFORM}:${channelId}:${messageId}`;
}

export function readMessageId(id: string): MessagePlace | undefined {
  const [, channelId, messageId] = /^discord:(\d+):(\d+)$/.exec(id) ?? [];
  return channelId === undefined || messageId === undefined ? undefined : { channelId, messageId };
}

/**
 * When the object with this id was created, in Unix milliseconds.
 * https://docs.discord.com/developers/reference#snowflakes
 */
export function timeOf(id: string): number {
  return Number(BigInt(id) >> TIME_SHIFT) + EPOCH_MS;
}

/** Equal nonces give equal results in every process. Discord accepts at most 25 characters. */
export function toNonce(nonce: string): string {
  return digest(nonce).slice(0, 22);
}

/** A short hash of a text that must not appear in a log, a key or a button. */
export function toFingerprint(text: string): string {
  return digest(text).slice(0, 16);
}

/** The application's id, encoded in the first part of a token. Undefined for a simulator's token. */
export function applicationIdOf(token: string): string | undefined {
  const [first = "", ...rest] = token.trim().split(".");
  const id = Buffer.from(first, "base64url").toString();
  return rest.length === 2 && /^\d{17,20}$/.test(id) ? id : undefined;
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("base64url");
}

/**
 * The shard of a server. Direct messages belong to the first shard.
 * https://docs.discord.com/developers/events/gateway#sharding
 */
export function shardOf(guildId: string | undefined, count: number): number {
  return guildId === undefined ? 0 : Number((BigInt(guildId) >> TIME_SHIFT) % BigInt(count));
}
