import type { AdapterOptions } from "../../src/port/adapter.ts";
import type { FindTurn, Looking, ReadAbout } from "../../src/port/catalogue.ts";
import type { Workspaces } from "./api/workspaces.ts";

/** Slack reaches the bot through sockets that the bot opens, or with signed requests to the bot's server. */
export type SlackTransport = { mode: "socket"; appToken: string } | { mode: "http"; signingSecret: string };

/** `withdrawn`: an organisation removed the bot from one of its workspaces. */
export type Parting = "uninstalled" | "revoked" | "withdrawn";

export interface SlackAdapterOptions extends AdapterOptions {
  transport: SlackTransport;
  /** One workspace with its token, or the workspaces that installed the bot themselves. */
  installed: { botToken: string } | { workspaces: Workspaces };
  /** The key for the marks on the bot's own messages: a secret that survives restarts. */
  markKey: string;
  /** The Web API's base URL, which ends in `/api/`; by default Slack's. */
  apiUrl?: string | undefined;
  /** Other bots, by user id or bot id. The bot answers their messages like people's. */
  allowedBots?: readonly string[];
  findTurn: FindTurn;
  /** If absent, the home tab shows no personal content. */
  readAbout?: ReadAbout;
  /** Remembers the channel that a person has open, which Slack can report separately. If absent, the bot ignores it. */
  looking?: Looking;
  /**
   * Called when the bot left a workspace or an organisation; `atMs` is in Unix milliseconds. If it rejects, Slack
   * repeats the event. Absent with a single token, whose loss is fatal.
   */
  onUninstalled?(id: string, atMs: number, how: Parting): Promise<void>;
  /** Pauses between checks of a file that Slack is still processing; by default `POLL_PAUSES_MS`. */
  pollPausesMs?: readonly number[];
}
