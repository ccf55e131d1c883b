import type { Logger } from "pino";
import type { CommandHelp, ImagineMenu, ListModels } from "../../src/port/catalogue.ts";

export interface DiscordAdapterOptions {
  token: string;
  /** REST base without the version; Discord's own when absent. */
  apiUrl?: string;
  threads: ThreadMode;
  /** Registered besides `/ask`. */
  commands: readonly CommandHelp[];
  /** Proposed while somebody types after `/model`. */
  listModels: ListModels;
  /** The form in which pictures are asked for; absent: nobody can ask for one. */
  imagine?: ImagineMenu;
  log: Logger;
  /** Discord will not take this bot back: in plain words why. Called at most once, never before `listen` has resolved. */
  onFatal(reason: string): void;
  /** Unix milliseconds. */
  now(): number;
  /** That use the token at the moment, this one included; absent: it is the only one. */
  processes?: () => number;
  /** Registers the commands for this server alone, where they can be used at once. */
  guildId?: string;
  /** The shards of this process; all that Discord recommends when absent. */
  shards?: { ids: readonly number[]; count: number };
  /** Keeps the direct conversations over a restart, since Discord does not list them. */
  directChannels?: DirectChannelStore;
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
