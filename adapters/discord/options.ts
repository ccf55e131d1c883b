import type { Logger } from "pino";
import type { CommandHelp, ImagineMenu, IsListening, ListModels, ReadPersona } from "../../src/port/catalogue.ts";
import type { SharedWaits } from "../../src/port/pace.ts";

export interface DiscordAdapterOptions {
  token: string;
  /** REST base without the version; Discord's own when absent. */
  apiUrl?: string;
  threads: ThreadMode;
  /** Registered besides `/ask`. */
  commands: readonly CommandHelp[];
  /** Proposed while somebody types after `/model`. */
  listModels: ListModels;
  /** Absent: the form for a persona begins empty. */
  readPersona?: ReadPersona;
  /** Absent: no channel is listened to. */
  isListening?: IsListening;
  /** Groups and roles that the policy names; absent: none. */
  namedGroups?: () => Promise<readonly string[]>;
  /** The form in which pictures are asked for; absent: nobody can ask for one. */
  imagine?: ImagineMenu;
  log: Logger;
  /** Discord will not take this bot back: in plain words why. Called at most once, never before `listen` has resolved. */
  onFatal(reason: string): void;
  /** Unix milliseconds. */
  now(): number;
  /** That use the token at the moment, this one included; absent: it is the only one. */
  processes?: () => number;
  /** Shared with those processes; absent: there are none. */
  waits?: SharedWaits;
  /** Registers the commands for this server alone, where they can be used at once. */
  guildId?: string;
  /** The shards of this process; absent: its share of those that Discord recommends. */
  shards?: { ids: readonly number[]; count: number };
  /** Shares shards, and the right to begin sessions, with other processes; absent: there is no other one. */
  shares?: ShardShares;
  /** Keeps the direct conversations over a restart, since Discord does not list them. */
  directChannels?: DirectChannelStore;
}

/** What the processes of one bot agree on. */
export interface ShardShares {
  /** To be said every second. `inUse`: connected here; `atOnce`: to be connected at a time. Rejects while that is not known. */
  claim(claim: {
    count: number;
    inUse: readonly number[];
    atOnce: number;
    /** This process gives what it has to others, once they have it too. */
    isLeaving: boolean;
  }): Promise<ShardShare>;
  /** Gives all shards back, of which there are so many. Never rejects. */
  leave(count: number): Promise<void>;
  /** Takes a turn that comes once in so many milliseconds. False: not yet. */
  takeTurn(name: string, everyMs: number): Promise<boolean>;
}

export interface ShardShare {
  /** The shards that are to be connected here. */
  own: readonly number[];
  /** Some are nobody's yet. */
  isOpen: boolean;
  /** Nobody else would take what this process has. */
  isAlone: boolean;
}

/** Keeps the ids of direct conversations over a restart. */
export interface DirectChannelStore {
  read(): Promise<readonly string[]>;
  write(channelIds: readonly string[]): Promise<void>;
  /** One task after the other among all processes: what is read, changed and written back is done in one. */
  inTurn<T>(task: () => Promise<T>): Promise<T>;
}

/** `off` keeps to chains of replies, `on` opens a thread for each question, `auto` only beside an answer that is being written. */
export type ThreadMode = "auto" | "on" | "off";
