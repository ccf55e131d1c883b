import { createHash } from "node:crypto";

export const PLATFORM = "discord";

/** The first moment that Discord's ids can name, Unix milliseconds. */
const EPOCH_MS = 1_420_070_400_000;
const TIME_SHIFT = 22n;

/** The ids that lead to a message. */
export interface MessagePlace {
  channelId: string;
  messageId: string;
}

/** A message's id as the core knows it: writing to a message needs its channel too. */
export function toMessageId({ channelId, messageId }: MessagePlace): string {
  return `${PLATFORM}:${channelId}:${messageId}`;
}

export function readMessageId(id: string): MessagePlace | undefined {
  const [, channelId, messageId] = /^discord:(\d+):(\d+)$/.exec(id) ?? [];
  return channelId === undefined || messageId === undefined ? undefined : { channelId, messageId };
}

/**
 * The time at which the object with this id was made, Unix milliseconds.
 * https://docs.discord.com/developers/reference#snowflakes
 */
export function timeOf(id: string): number {
  return Number(BigInt(id) >> TIME_SHIFT) + EPOCH_MS;
}

/** The same for the same nonce in every process; Discord takes 25 characters at most. */
export function toNonce(nonce: string): string {
  return digest(nonce).slice(0, 22);
}

/** A short name for a text that must not itself stand in a log, a key or a button. */
export function toFingerprint(text: string): string {
  return digest(text).slice(0, 16);
}

/** The application's id, with which a token begins; undefined for a stand-in's token. */
export function applicationIdOf(token: string): string | undefined {
  const [first = "", ...rest] = token.trim().split(".");
  const id = Buffer.from(first, "base64url").toString();
  return rest.length === 2 && /^\d{17,20}$/.test(id) ? id : undefined;
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("base64url");
}

/** The shard that hears a server; the first hears direct messages. https://docs.discord.com/developers/events/gateway#sharding */
export function shardOf(guildId: string | undefined, count: number): number {
  return guildId === undefined ? 0 : Number((BigInt(guildId) >> TIME_SHIFT) % BigInt(count));
}
