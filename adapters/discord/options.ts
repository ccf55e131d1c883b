import type { AdapterOptions } from "../../src/port/adapter.ts";
import type { SharedParts } from "../../src/port/shares.ts";

export interface DiscordAdapterOptions extends AdapterOptions {
  token: string;
  /** The base URL of the REST API without the version; by default Discord's. */
  apiUrl?: string | undefined;
  threads: ThreadMode;
  /** The number of processes that use the token now, including this one; by default 1. */
  processes?: () => number;
  /** The bot registers its commands only on this server. They work there at once. Undefined means all servers. */
  guildId?: string | undefined;
  /** The shards of this process; by default its share of those that Discord recommends. */
  shards?: { ids: readonly number[]; count: number } | undefined;
  /** Divides the shards and the right to start sessions among processes. Absent if this process is alone. */
  shares?: SharedParts | undefined;
  /** Limits the rate of session starts if there are no `shares`; by default in memory. */
  takeTurn?: SharedParts["takeTurn"];
  /** Stores the direct conversations for the next start, because Discord does not list them. */
  directChannels?: DirectChannelStore;
  /** Stores the session that receives direct messages. If absent, the next process cannot resume that session. */
  lastSession?: LastSessionStore;
}

export interface LastSessionStore {
  read(): Promise<LastSession | undefined>;
  write(session: LastSession): Promise<void>;
}

export interface LastSession {
  id: string;
  url: string;
  /** The number of the last event that this session delivered, or a slightly smaller one. */
  sequence: number;
}

export interface DirectChannelStore {
  read(): Promise<readonly string[]>;
  write(channelIds: readonly string[]): Promise<void>;
  /** Runs one task at a time across all processes: a task can read, change and write back. */
  inTurn<T>(task: (held: Pick<DirectChannelStore, "read" | "write">) => Promise<T>): Promise<T>;
}

/**
 * Answers in a channel go into reply chains (`off`), into new threads (`on`), or into a new thread only while another
 * answer grows there (`auto`).
 */
export type ThreadMode = "auto" | "on" | "off";
