import type { Access } from "../policy/access.ts";
import type { Audit } from "../policy/audit.ts";
import { SinkError } from "../port/errors.ts";
import type { Author, CommandEvent } from "../port/events.ts";
import { isRefusal } from "../reply/platform-call.ts";
import { describeLack } from "../text/quote-name.ts";
import { type Command, NOT_KEPT, ONLY_ADMINS, postNotice, readPerson } from "./command.ts";

const HOW = "Write `/export` for everything I keep about you; admins: `/export @someone`.";

export interface ExportCommandDeps {
  collect(platform: string, author: Author): Promise<object>;
  access: Pick<Access, "isAdmin">;
  audit: Pick<Audit, "note">;
}

/**
 * `/export`: gives the person who asks a JSON file, for them alone, with everything that is kept about them. Admins get
 * that of another person with `/export @someone`.
 */
export function createExportCommand({ collect, access, audit }: ExportCommandDeps): Command {
  /** The person whose data the asker wants, or the sentence that refuses. */
  async function findPerson(event: CommandEvent): Promise<Author | string> {
    const words = event.text.trim();
    if (words === "") return event.author;
    const person = readPerson(words, event);
    if (person === undefined) return HOW;
    if (!access.isAdmin(event)) return ONLY_ADMINS;
    const isNoted = await audit.note({ event, what: "export", after: `person:${person.id}` });
    return isNoted ? person : NOT_KEPT;
  }

  return {
    name: "export",
    description: "Gives you everything I keep about you, as a file; admins: @someone.",
    async run(event, sink, signal) {
      const person = await findPerson(event);
      if (typeof person === "string") return postNotice(sink, event, person, signal);
      const kept = await collect(event.reply.platform, person);
      const bytes = new TextEncoder().encode(JSON.stringify(kept, null, 2));
      if (bytes.length > sink.limits.maxFileBytes) {
        const text = `The file has ${bytes.length} bytes, more than a file may have here. Ask the operator for it.`;
        return postNotice(sink, event, text, signal);
      }
      const files = [{ name: "export.json", contentType: "application/json", bytes }];
      try {
        await sink.upload(files, undefined, event.key, signal);
      } catch (error) {
        // Anything but a refusal may pass: the queue tries again.
        if (!isRefusal(error)) throw error;
        await postNotice(sink, event, describeRefusal(error), signal);
      }
    },
  };
}

function describeRefusal(error: unknown): string {
  const missing = error instanceof SinkError ? error.missing : undefined;
  const way =
    missing === undefined
      ? "No file is taken here. Ask for it in another place."
      : `${describeLack(missing)} Then ask for it again.`;
  return `I could not give you the file with what I keep about you. ${way}`;
}
