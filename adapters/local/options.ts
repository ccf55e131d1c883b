import type { DatabaseSync } from "node:sqlite";
import type { Logger } from "pino";
import type {
  CommandHelp,
  ImagineMenu,
  IsListening,
  Preview,
  ReadAbout,
  ReadPersona,
} from "../../src/port/catalogue.ts";
import type { Setup } from "../../src/port/setup.ts";
import type { Example } from "./page/wire.ts";

export interface LocalAdapterOptions {
  /** The process's one database, in WAL mode. The adapter never closes it. */
  database: DatabaseSync;
  botName: string;
  log: Logger;
  /** The password that everybody who opens the page is asked for; absent: none. */
  password?: string | undefined;
  /** Signs the cookie that proves that a browser gave the password before. */
  browserKey: string;
  /** Host names the page may be reached under besides this machine's own; with or without a port. */
  allowedHosts: readonly string[];
  /** Completed after a slash. With none, every word after a slash is taken for a command. */
  commands: readonly CommandHelp[];
  /** Absent: no channel is listened to. */
  isListening?: IsListening;
  /** The choices of the form for pictures; absent: there is no form, and `/imagine` is a command like any other. */
  imagine?: ImagineMenu;
  /** Tells the model that answers at a place; absent: it is not shown. */
  readAbout?: ReadAbout;
  /** Fills the form for a persona; absent: there is no form, and `/persona` is a command like any other. */
  readPersona?: ReadPersona;
  /** Tells how an answer comes out on other platforms; absent: it is not offered. */
  preview?: (markdown: string) => Promise<readonly Preview[]>;
  /** The sandbox answers, and no real model. */
  isSandbox?: boolean;
  /** Connects platforms and a gateway; absent: not offered. */
  setup?: Setup;
  /** Offers `setup` to people elsewhere too, also when something is set up already. */
  adminPassword?: string | undefined;
  /** Offered in an empty chat. */
  examples?: readonly Example[];
}

/** Questions for a newcomer to begin with. */
export const EXAMPLES: readonly Example[] = [
  { label: "Code and a table", prompt: "Write 200 words about sorting, with code in Python and a table" },
  { label: "What time is it?", prompt: "What time is it in Tokyo right now?" },
  { label: "Draw a picture", prompt: "/imagine a lighthouse at dusk, in watercolour --ar 16:9" },
  { label: "日本語で話す", prompt: "こんにちは。何ができますか？" },
];
