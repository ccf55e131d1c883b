import type { Changes } from "../support/changes.ts";
import type { Clock } from "./clock.ts";
import type { Files } from "./files.ts";
import type { Portal } from "./handshake.ts";
import type { Notified } from "./mentions.ts";
import type { MessagePayloads } from "./message-payload.ts";
import type { GatewayEvent } from "./sessions.ts";
import type { Timeline } from "./timeline.ts";
import type { Violations } from "./violations.ts";
import type { Channel, User, World } from "./world.ts";

/** A user whom the bot notified with the text of a post or an edit, or with a reply. */
export interface Ping extends Notified {
  messageId: string;
  channelId: string;
  by: "post" | "edit";
}

export interface Typing {
  channelId: string;
  atMs: number;
}

/** The state that all parts of the simulator share. */
export interface Simulation {
  readonly clock: Clock;
  readonly world: World;
  readonly changes: Changes;
  readonly violations: Violations;
  readonly files: Files;
  readonly payloads: MessagePayloads;
  readonly timeline: Timeline;
  readonly portal: Portal;
  readonly search: SearchState;
  readonly rules: Rules;
  readonly pings: Ping[];
  readonly typing: Typing[];
  deliver(event: GatewayEvent): void;
}

export interface SearchState {
  /** Number of searches that Discord still refuses, because it is indexing the server. */
  unready: number;
  /** If true, searches find messages of all channels, even if the bot cannot read them. */
  isBehind: boolean;
}

/** Limits of Discord that tests can lower. */
export interface Rules {
  /** Maximum size of a file without Nitro or boosts, in bytes. */
  maxFileBytes: number;
  /** How long Discord remembers a nonce. */
  nonceMs: number;
  /** Maximum number of edits per hour and channel, for messages older than an hour. */
  oldMessageEdits: number;
  maxActiveThreads: number;
  /** If true, message events contain the type of their channel, which Discord does not promise. */
  sendsChannelType: boolean;
}

const BOOSTED_BYTES: Readonly<Record<number, number>> = { 2: 50 * 2 ** 20, 3: 100 * 2 ** 20 };

/**
 * Maximum size of a file in a channel, in bytes. For a response to an interaction, the Nitro of its `user` counts too.
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
