import { SinkError } from "../port/errors.ts";
import type { Author, CommandEvent } from "../port/events.ts";
import { isRefusal } from "../reply/platform-call.ts";
import { describeLack } from "../text/quote-name.ts";
import { type Command, NOT_KEPT, ONLY_ADMINS, PERSON_FIELD, postNotice, readPerson } from "./command.ts";

const HOW = "Write `/export` for everything I keep about you; admins: `/export @someone`.";

/**
 * `/export` privately sends the asker all their stored data as a JSON file. `/export @someone` sends an admin another
 * person's data.
 */
export const EXPORT: Command = {
  name: "export",
  description: "Get everything I keep about you as a file; admins: @someone.",
  usage: "nothing; admins: @someone",
  fields: [PERSON_FIELD],
  namesPeople: true,
  create({ people, access, audit }) {
    /** Returns the person whose data the command exports, or a refusal. */
    async function findPerson(event: CommandEvent): Promise<Author | string> {
      const words = event.text.trim();
      if (words === "") return event.author;
      const person = readPerson(words, event);
      if (person === undefined) return HOW;
      if (!access.isAdmin(event)) return ONLY_ADMINS;
      const isNoted = await audit.note({ event, what: "export", after: `person:${person.id}` });
      return isNoted ? person : NOT_KEPT;
    }

    return async (event, sink, signal) => {
      const person = await findPerson(event);
      if (typeof person === "string") return postNotice(sink, event, person, signal);
      const kept = await people.collect(event.reply.platform, person);
      const bytes = new TextEncoder().encode(JSON.stringify(kept, null, 2));
      if (bytes.length > sink.limits.maxFileBytes) {
        const text = `The file is too large to send here (${bytes.length} bytes). Ask the operator for it.`;
        return postNotice(sink, event, text, signal);
      }
      const files = [{ name: "export.json", contentType: "application/json", bytes }];
      try {
        await sink.upload(files, undefined, event.key, signal);
      } catch (error) {
        // The queue retries after any other error.
        if (!isRefusal(error)) throw error;
        await postNotice(sink, event, describeRefusal(error), signal);
      }
    };
  },
};

function describeRefusal(error: unknown): string {
  const missing = error instanceof SinkError ? error.missing : undefined;
  const way =
    missing === undefined
      ? "This channel doesn't accept files. Ask me somewhere else."
      : `${describeLack(missing)} Then ask again.`;
  return `I couldn't send you the file with your data. ${way}`;
}
