import type { PersonalData } from "../people/personal-data.ts";
import type { Permission } from "../policy/rules.ts";
import type { CommandField, CommandHelp } from "../port/catalogue.ts";
import type { Author, CommandEvent, InboundEvent, ReplyAddress } from "../port/events.ts";
import type { ReplySink } from "../port/sink.ts";
import type { Planner } from "../schedules/planner.ts";
import type { Services } from "../services/services.ts";
import { neutralize } from "../text/neutralize.ts";

/** The bot says this if the store did not accept a change. It says `NOT_KNOWN` if the store could not be read. */
export const NOT_KEPT = "I couldn't save that, because my storage is unavailable. Try again in a minute.";
export const NOT_KNOWN = "I can't look that up, because my storage is unavailable. Try again in a minute.";
export const ONLY_ADMINS = "Only admins can do that; the policy file names them.";

/** A command that people send instead of a question. Each command has its own file and is listed in `commands.ts`. */
export interface Command extends CommandHelp {
  /**
   * The permission that the author needs. If absent, everyone can use the command, and the command checks changes
   * itself.
   */
  needs?: Permission;
  /** If absent, the command starts a turn, as `/imagine` does. */
  create?(deps: CommandDeps): RunCommand;
}

/** Executes a command and answers through the sink. It can run again after a crash, so it must be idempotent. */
export type RunCommand = (event: CommandEvent, sink: ReplySink, signal: AbortSignal) => Promise<void>;

export interface CommandDeps extends Services {
  people: PersonalData;
  planner: Planner;
  /** All commands, for `/help`. */
  commands: readonly CommandHelp[];
  /** Names of the bot's built-in tools. */
  toolNames: readonly string[];
  serversOf(place: ReplyAddress): readonly ToolServer[];
}

/** A tool server that a channel can use. */
export interface ToolServer {
  name: string;
  /** `failed` has no reason here. Only the doctor, the log and the dashboard show the reason. */
  state: "connecting" | "ready" | "failed";
  tools: ReadonlyArray<{ name: string; approval?: unknown }>;
  /** The server's prompts, as people type them. */
  prompts: readonly string[];
}

export const PERSON_FIELD: CommandField = {
  name: "person",
  description: "For admins: another person's data",
  kind: "person",
};

/** Answers an event with one short message. Its nonce is the event's key, so a retry posts nothing twice. */
export async function postNotice(
  sink: ReplySink,
  event: InboundEvent,
  markdown: string,
  signal: AbortSignal,
): Promise<void> {
  await sink.post({ markdown: neutralize(markdown), buttons: [], streaming: false }, `${event.key}:notice`, signal);
}

/** Returns the person that a mention or `person:ID` names, in the asker's workspace. Undefined for other words. */
export function readPerson(word: string, { author }: Pick<CommandEvent, "author">): Author | undefined {
  const name = /^<@!?(\w+)(?:\|[^>]*)?>$/.exec(word)?.[1] ?? /^person:(\S+)$/.exec(word)?.[1];
  if (name === undefined) return undefined;
  const workspace = author.id.slice(0, author.id.lastIndexOf("/") + 1);
  return { id: name.includes("/") ? name : workspace + name, name };
}

export function toList(texts: readonly string[]): string {
  return texts.map((text) => `- ${text}`).join("\n");
}
