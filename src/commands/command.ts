import type { PersonalData } from "../people/personal-data.ts";
import type { Permission } from "../policy/rules.ts";
import type { CommandField, CommandHelp } from "../port/catalogue.ts";
import type { Author, CommandEvent, InboundEvent, ReplyAddress } from "../port/events.ts";
import type { ReplySink } from "../port/sink.ts";
import type { Planner } from "../schedules/planner.ts";
import type { Services } from "../services/services.ts";
import { neutralize } from "../text/neutralize.ts";

/** The reply if the store did not accept a change. `NOT_KNOWN` is the reply if the store could not be read. */
export const NOT_KEPT = "I couldn't save that, because my storage is unavailable. Try again in a minute.";
export const NOT_KNOWN = "I can't look that up, because my storage is unavailable. Try again in a minute.";
export const ONLY_ADMINS = "Only admins can do that; the policy file names them.";

/** A command. Each command has its own file and is listed in `commands.ts`. */
export interface Command extends CommandHelp {
  /**
   * The permission that the author needs. Absent: everyone can use the command, and the command itself checks who can
   * make changes.
   */
  needs?: Permission;
  /** Absent: the command starts a turn, as `/imagine` does. */
  create?(deps: CommandDeps): RunCommand;
}

/** Executes a command and answers through the sink. Must be idempotent, because it can run again after a crash. */
export type RunCommand = (event: CommandEvent, sink: ReplySink, signal: AbortSignal) => Promise<void>;

export interface CommandDeps extends Services {
  people: PersonalData;
  planner: Planner;
  commands: readonly CommandHelp[];
  toolNames: readonly string[];
  serversOf(place: ReplyAddress): readonly ToolServer[];
}

export interface ToolServer {
  name: string;
  /** Only the doctor, the log and the dashboard show why a server failed. */
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

/** Answers an event with one short message. The event's key is the nonce, so a retry does not post twice. */
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
