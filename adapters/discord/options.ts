import type { SharedParts } from "../../src/concurrency/shares.ts";
import type { AdapterOptions } from "../../src/port/adapter.ts";

export interface DiscordAdapterOptions extends AdapterOptions {
  token: string;
  /** REST base without the version; Discord's own when absent. */
  apiUrl?: string;
  threads: ThreadMode;
  /** The number of processes that use the token at the moment, this one included; absent: 1. */
  processes?: () => number;
  /** Registers the commands for this server alone, where they can be used at once. */
  guildId?: string;
  /** The shards of this process; absent: its share of those that Discord recommends. */
  shards?: { ids: readonly number[]; count: number };
  /** Shares shards, and the right to begin sessions, with other processes; absent: there is no other one. */
  shares?: SharedParts;
  /** Keeps the direct conversations over a restart, since Discord does not list them. */
  directChannels?: DirectChannelStore;
  /** Keeps the session in which direct messages are told, for whoever comes after this process; absent: none can resume it. */
  lastSession?: LastSessionStore;
}

/** Keeps what is needed to resume a session, besides the token. */
export interface LastSessionStore {
  read(): Promise<LastSession | undefined>;
  write(session: LastSession): Promise<void>;
}

export interface LastSession {
  id: string;
  /** Discord's address for it. */
  url: string;
  /** The number of an event up to which it was heard, or a little less. */
  sequence: number;
}

/** Keeps the ids of direct conversations over a restart. */
export interface DirectChannelStore {
  read(): Promise<readonly string[]>;
  write(channelIds: readonly string[]): Promise<void>;
  /** Runs one task at a time among all processes, so that a task may read, change and write back. */
  inTurn<T>(task: () => Promise<T>): Promise<T>;
}

/** `off` keeps to chains of replies, `on` opens a thread for each question, `auto` only beside an answer that is being written. */
export type ThreadMode = "auto" | "on" | "off";
