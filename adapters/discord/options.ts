import type { AdapterOptions } from "../../src/port/adapter.ts";
import type { SharedParts } from "../../src/port/shares.ts";

export interface DiscordAdapterOptions extends AdapterOptions {
  token: string;
  /** The base URL of the REST API without the version, by default Discord's own. */
  apiUrl?: string | undefined;
  threads: ThreadMode;
  /** The number of processes that use the token now, including this one. Default 1. */
  processes?: () => number;
  /**
   * The server on which to register the commands. There they work at once. If unset, the commands are registered
   * everywhere.
   */
  guildId?: string | undefined;
  /** The shards of this process, by default its share of those that Discord recommends. */
  shards?: { ids: readonly number[]; count: number } | undefined;
  /** Shares shards, and the right to start sessions, with other processes. Absent if there is only this process. */
  shares?: SharedParts | undefined;
  /** Takes turns at starting sessions if `shares` is absent. By default in memory. */
  takeTurn?: SharedParts["takeTurn"];
  /** Stores the direct conversations for the next start, because Discord does not list them. */
  directChannels?: DirectChannelStore;
  /** Stores the session that receives direct messages for the next process. If absent, no process can resume it. */
  lastSession?: LastSessionStore;
}

/** Stores the data that is needed to resume a session, except the token. */
export interface LastSessionStore {
  read(): Promise<LastSession | undefined>;
  write(session: LastSession): Promise<void>;
}

export interface LastSession {
  id: string;
  /** Discord's URL for resuming it. */
  url: string;
  /** The number of the last event that this session delivered, or a slightly smaller number. */
  sequence: number;
}

/** Stores the ids of direct conversations for the next start. */
export interface DirectChannelStore {
  read(): Promise<readonly string[]>;
  write(channelIds: readonly string[]): Promise<void>;
  /** Runs one task at a time across all processes, so that a task can read, change and write back. */
  inTurn<T>(task: (held: Pick<DirectChannelStore, "read" | "write">) => Promise<T>): Promise<T>;
}

/**
 * `off` uses chains of replies. `on` opens a thread for each question. `auto` opens a thread only while another answer
 * is growing.
 */
export type ThreadMode = "auto" | "on" | "off";
