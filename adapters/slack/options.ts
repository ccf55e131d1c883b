import type { Logger } from "pino";
import type {
  CommandHelp,
  FindTurn,
  ImagineMenu,
  IsListening,
  ListModels,
  Looking,
  ReadAbout,
  ReadPersona,
} from "../../src/port/catalogue.ts";
import type { SharedWaits } from "../../src/port/pace.ts";
import type { Workspaces } from "./api/workspaces.ts";

/** Slack reaches the bot over sockets that the bot opens, or by signed requests to its own server. */
export type SlackTransport = { mode: "socket"; appToken: string } | { mode: "http"; signingSecret: string };

export interface SlackAdapterOptions {
  transport: SlackTransport;
  /** One workspace by its token, or those that installed the bot themselves. */
  installed: { botToken: string } | { workspaces: Workspaces };
  /** The key of what marks the bot's own messages; a secret, and the same in every run. */
  markKey: string;
  /** Web API base that ends in `/api/`; Slack's own when absent. */
  apiUrl?: string;
  /** Bots whose messages are heard as people's are, by user id or bot id. Nobody else's are. */
  allowedBots?: readonly string[];
  /** Understood besides `/ask`. */
  commands: readonly CommandHelp[];
  listModels: ListModels;
  findTurn: FindTurn;
  /** Absent: the home says nothing about who looks at it. */
  readAbout?: ReadAbout;
  /** User groups that the policy names, whose members are looked up; absent: none. */
  namedGroups?: () => Promise<readonly string[]>;
  /** Absent: no channel is listened to. */
  isListening?: IsListening;
  /** Absent: the usual prompts are suggested everywhere, and the form for a persona begins empty. */
  readPersona?: ReadPersona;
  /** Absent: what Slack tells of that apart from a message is not known. */
  looking?: Looking;
  /** Absent: pictures are off. */
  imagine?: ImagineMenu;
  /** Shared with other processes that use the same tokens; absent: there are none. */
  waits?: SharedWaits;
  log: Logger;
  /** Slack will not take this bot back: in plain words why. Called at most once, never before `listen` has resolved. */
  onFatal(reason: string): void;
  /** Unix milliseconds. */
  now(): number;
  /** Milliseconds on a clock that never goes back; that of the process when absent. */
  monotonicNow?(): number;
  /**
   * The bot is in a workspace no more, since `atMs`. Absent with one token, whose end is fatal. What was rejected is
   * told again.
   */
  onUninstalled?(teamId: string, atMs: number, how: "uninstalled" | "revoked"): Promise<void>;
  /** Sockets held at the same time, so that a refresh of one drops nothing; two when absent. */
  connections?: number;
  /** Pauses between the looks at a file that Slack still works on; sensible ones when absent. */
  pollPausesMs?: readonly number[];
}
