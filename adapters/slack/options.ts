import type { AdapterOptions } from "../../src/port/adapter.ts";
import type { FindTurn, Looking, ReadAbout } from "../../src/port/catalogue.ts";
import type { Workspaces } from "./api/workspaces.ts";

/** Slack reaches the bot over sockets that the bot opens, or by signed requests to its own server. */
export type SlackTransport = { mode: "socket"; appToken: string } | { mode: "http"; signingSecret: string };

export interface SlackAdapterOptions extends AdapterOptions {
  transport: SlackTransport;
  /** One workspace by its token, or those that installed the bot themselves. */
  installed: { botToken: string } | { workspaces: Workspaces };
  /** The key of the marks on the bot's own messages: a secret that outlives the process. */
  markKey: string;
  /** Web API base that ends in `/api/`; Slack's own when absent. */
  apiUrl?: string;
  /** The other bots whose messages are answered like people's, by user id or bot id. */
  allowedBots?: readonly string[];
  findTurn: FindTurn;
  /** Absent: the home tab shows nothing personal. */
  readAbout?: ReadAbout;
  /** Remembers the channel somebody looks at, which Slack may tell apart from the message; absent: that is dropped. */
  looking?: Looking;
  /**
   * The bot left a workspace at `atMs`, Unix milliseconds. Slack repeats an event that was rejected. Absent with a single
   * token, whose end is fatal.
   */
  onUninstalled?(teamId: string, atMs: number, how: "uninstalled" | "revoked"): Promise<void>;
  /** Pauses between polls of a file that Slack still processes; see `POLL_PAUSES_MS` when absent. */
  pollPausesMs?: readonly number[];
}
