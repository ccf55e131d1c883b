import { SinkError } from "../port/errors.ts";
import type { Author } from "../port/events.ts";
import { isRefusal } from "../reply/platform-call.ts";
import { describeLack } from "../text/quote-name.ts";
import { type Command, postNotice } from "./command.ts";

/** `/export`: gives the person who asks a JSON file, for them alone, with everything that is kept about them. */
export function createExportCommand(collect: (platform: string, author: Author) => Promise<object>): Command {
  return {
    name: "export",
    description: "Gives you everything I keep about you, as a file.",
    async run(event, sink, signal) {
      const kept = await collect(event.reply.platform, event.author);
      const bytes = new TextEncoder().encode(JSON.stringify(kept, null, 2));
      if (bytes.length > sink.limits.maxFileBytes) {
        const text = `What I keep about you is ${bytes.length} bytes, more than a file may have here. Ask the operator for it.`;
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
