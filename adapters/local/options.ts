import type { DatabaseSync } from "node:sqlite";
import type { Logger } from "pino";
import type {
  CommandHelp,
  ImagineMenu,
  Preview,
  ReadAbout,
  ReadPersona,
  ScheduleForm,
} from "../../src/port/catalogue.ts";
import type { Setup } from "../../src/port/setup.ts";
import type { Example } from "./page/wire.ts";

export interface LocalAdapterOptions {
  /** The process's only database, in WAL mode. The adapter never closes it. */
  database: DatabaseSync;
  botName: string;
  log: Logger;
  /** Absent: the page needs no password. */
  password?: string | undefined;
  /** Signs the cookie that proves that the browser sent the password before. */
  browserKey: string;
  /** More host names of the page, with or without a port, in addition to this machine's own names. */
  allowedHosts: readonly string[];
  /** The commands that the page completes after a slash. Empty: every word after a slash counts as a command. */
  commands: readonly CommandHelp[];
  /** The choices in the image form. Absent: there is no form, and `/imagine` is an ordinary command. */
  imagine?: ImagineMenu;
  /** Absent: the page does not show which model answers in a chat. */
  readAbout?: ReadAbout;
  /** Fills in the persona form. Absent: there is no form, and `/persona` is an ordinary command. */
  readPersona?: ReadPersona;
  /** If absent, the buttons of a schedule answer with a command to copy. */
  scheduleForm?: ScheduleForm | undefined;
  /** Shows how an answer looks on other platforms. If absent, the page does not offer this. */
  preview?: (markdown: string) => Promise<readonly Preview[]>;
  isSandbox?: boolean;
  /** Connects platforms and a gateway. Absent: the page does not offer this. */
  setup?: Setup;
  /** Opens `setup` also to people on other machines, and when something is already configured. */
  adminPassword?: string | undefined;
  examples?: readonly Example[];
}

export const EXAMPLES: readonly Example[] = [
  { label: "Code and a table", prompt: "Write 200 words about sorting, with code in Python and a table" },
  { label: "What time is it?", prompt: "What time is it in Tokyo right now?" },
  { label: "Create an image", prompt: "/imagine a lighthouse at dusk, in watercolour --ar 16:9" },
  { label: "日本語で話す", prompt: "こんにちは。何ができますか？" },
];
