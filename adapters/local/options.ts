import type { DatabaseSync } from "node:sqlite";
import type { Logger } from "pino";
import type { CommandHelp, ImagineMenu, Preview, ReadAbout, ReadPersona } from "../../src/port/catalogue.ts";
import type { Setup } from "../../src/port/setup.ts";
import type { Example } from "./page/wire.ts";

export interface LocalAdapterOptions {
  /** The process's only database, in WAL mode. The adapter never closes it. */
  database: DatabaseSync;
  botName: string;
  log: Logger;
  /** The page's password. If absent, the page needs none. */
  password?: string | undefined;
  /** Signs the cookie which proves that the browser has sent the password before. */
  browserKey: string;
  /** Further host names of the page, with or without a port, in addition to this machine's own names. */
  allowedHosts: readonly string[];
  /**
   * The names that the page completes after a slash. If there are none, every word after a slash counts as a command.
   */
  commands: readonly CommandHelp[];
  /** The choices in the form for pictures. If absent, there is no form, and `/imagine` is an ordinary command. */
  imagine?: ImagineMenu;
  /** Reads the model that answers in a chat. If absent, the page does not show the model. */
  readAbout?: ReadAbout;
  /** Fills in the form for a persona. If absent, there is no form, and `/persona` is an ordinary command. */
  readPersona?: ReadPersona;
  /** Shows how an answer looks on other platforms. If absent, the page does not offer this. */
  preview?: (markdown: string) => Promise<readonly Preview[]>;
  /** True if the sandbox answers instead of a real model. */
  isSandbox?: boolean;
  /** Connects platforms and a gateway. If absent, the page does not offer this. */
  setup?: Setup;
  /** Offers `setup` also to people on other machines, and when something is already set up. */
  adminPassword?: string | undefined;
  /** Offered in an empty chat. */
  examples?: readonly Example[];
}

/** Questions that a newcomer can start with. */
export const EXAMPLES: readonly Example[] = [
  { label: "Code and a table", prompt: "Write 200 words about sorting, with code in Python and a table" },
  { label: "What time is it?", prompt: "What time is it in Tokyo right now?" },
  { label: "Create an image", prompt: "/imagine a lighthouse at dusk, in watercolour --ar 16:9" },
  { label: "日本語で話す", prompt: "こんにちは。何ができますか？" },
];
