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

/** Records that the bot notified a user, with the text of a post or an edit, or with a reply. */
export interface Ping extends Notified {
  messageId: string;
  channelId: string;
  by: "post" | "edit";
}

/** Records that the bot showed its typing indicator. */
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

/** Discord's index of messages. */
export interface SearchState {
  /** Searches that are still refused, because Discord is indexing the server. */
  unready: number;
  /** Finds messages of all channels, also those that the bot cannot read. */
  isBehind: boolean;
}

/** Discord's limits that tests may need smaller. */
export interface Rules {
  /** Largest file without Nitro or boosts, bytes. */
  maxFileBytes: number;
  /** How long Discord remembers a nonce. */
  nonceMs: number;
  /** How many edits per hour and channel Discord allows for messages that are older than an hour. */
  oldMessageEdits: number;
  maxActiveThreads: number;
  /** Whether message events contain the type of their channel. Discord does not promise that. */
  sendsChannelType: boolean;
}

const BOOSTED_BYTES: Readonly<Record<number, number>> = { 2: 50 * 2 ** 20, 3: 100 * 2 ** 20 };

/**
 * The largest file in a channel, in bytes. In a response to an interaction, the Nitro of its `user` counts too.
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
