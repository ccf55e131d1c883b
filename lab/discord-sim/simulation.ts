import type { Changes } from "./changes.ts";
import type { Clock } from "./clock.ts";
import type { Files } from "./files.ts";
import type { Portal } from "./handshake.ts";
import type { Notified } from "./mentions.ts";
import type { MessagePayloads } from "./message-payload.ts";
import type { GatewayEvent } from "./sessions.ts";
import type { Timeline } from "./timeline.ts";
import type { Violations } from "./violations.ts";
import type { Channel, User, World } from "./world.ts";

/** Somebody was notified by the bot, by the text of a post or an edit, or by being answered. */
export interface Ping extends Notified {
  messageId: string;
  channelId: string;
  by: "post" | "edit";
}

/** The bot showed that it writes. */
export interface Typing {
  channelId: string;
  atMs: number;
}

/** What the parts of the simulator share. */
export interface Simulation {
  readonly clock: Clock;
  readonly world: World;
  readonly changes: Changes;
  readonly violations: Violations;
  readonly files: Files;
  readonly payloads: MessagePayloads;
  readonly timeline: Timeline;
  readonly portal: Portal;
  readonly rules: Rules;
  readonly pings: Ping[];
  readonly typing: Typing[];
  deliver(event: GatewayEvent): void;
}

/** Numbers of Discord's that tests may want smaller. */
export interface Rules {
  /** Largest file without Nitro or boosts, bytes. */
  maxFileBytes: number;
  /** How long a nonce is remembered. */
  nonceMs: number;
  /** Edits of messages older than an hour, per hour and channel. */
  oldMessageEdits: number;
  maxActiveThreads: number;
  /** Whether message events carry the type of their channel, which Discord does not promise. */
  sendsChannelType: boolean;
}

const BOOSTED_BYTES: Readonly<Record<number, number>> = { 2: 50 * 2 ** 20, 3: 100 * 2 ** 20 };

/**
 * Largest file in a channel, bytes. In an answer to an interaction the Nitro of its `user` counts too.
 * https://docs.discord.com/developers/reference#uploading-files
 */
export function fileLimitIn(
  { world, rules }: Pick<Simulation, "world" | "rules">,
  channel: Channel,
  user?: User,
): number {
  const tier = world.guilds.get(channel.guildId ?? "")?.premiumTier ?? 0;
  return Math.max(rules.maxFileBytes, BOOSTED_BYTES[tier] ?? 0, user?.nitroBytes ?? 0);
}

export const DEFAULT_RULES: Rules = {
  maxFileBytes: 10 * 2 ** 20,
  nonceMs: 5 * 60_000,
  oldMessageEdits: 30,
  maxActiveThreads: 1000,
  sendsChannelType: true,
};
