import type { Access } from "../policy/access.ts";
import type { Audit } from "../policy/audit.ts";
import type { Author, CommandEvent, InboundEvent } from "../port/events.ts";
import type { ReplySink } from "../port/sink.ts";
import { neutralize } from "../text/neutralize.ts";

/** The change could not be kept, the store could not be asked. */
export const NOT_KEPT = "I could not keep that, because my memory is out of reach. Try again in a minute.";
export const NOT_KNOWN = "I cannot look that up, because my memory is out of reach. Try again in a minute.";
export const ONLY_ADMINS = "Only admins may do that; whoever runs me names them in the policy file.";

/** A word people give the bot instead of a question. */
export interface Command {
  name: string;
  /** One sentence for the list of commands. */
  description: string;
  /** Set where the command bounds its own waits, because it may take long; it still ends when the signal aborts. */
  boundsItself?: true;
  /** Carries it out and answers through the sink. May be run again after a crash: everything it does bears repeating. */
  run(event: CommandEvent, sink: ReplySink, signal: AbortSignal): Promise<void>;
}

/** Settings commands check permission with `access` and record each change with `audit`. */
export interface SettingsRights {
  access: Pick<Access, "findRefusal">;
  audit: Pick<Audit, "note">;
}

/** A person may change what holds for everybody in the channel; everybody may where the platform tells nothing. */
export function mayConfigure(author: Author): boolean {
  return author.mayConfigure !== false;
}

/** Answers an event with one short message; the event's key as nonce keeps it single. */
export async function postNotice(
  sink: ReplySink,
  event: InboundEvent,
  markdown: string,
  signal: AbortSignal,
): Promise<void> {
  await sink.post({ markdown: neutralize(markdown), buttons: [], streaming: false }, `${event.key}:notice`, signal);
}

/** Reads the person that a mention or `person:ID` names, as the asker's workspace knows them. Undefined for other words. */
export function readPerson(word: string, { author }: Pick<CommandEvent, "author">): Author | undefined {
  const name = /^<@!?(\w+)(?:\|[^>]*)?>$/.exec(word)?.[1] ?? /^person:(\S+)$/.exec(word)?.[1];
  if (name === undefined) return undefined;
  const workspace = author.id.slice(0, author.id.lastIndexOf("/") + 1);
  const id = name.includes("/") ? name : workspace + name;
  const former = id.startsWith(workspace) && author.former && { ...author.former, id: id.slice(workspace.length) };
  return { id, name, ...(former && { former }) };
}

export function toList(texts: readonly string[]): string {
  return texts.map((text) => `- ${text}`).join("\n");
}
