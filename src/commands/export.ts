import type { Author } from "../adapter.ts";
import { type Command, postNotice } from "./command.ts";

/** `/export`: everything that is kept about the person who asks, which `collect` resolves to, as a JSON file that only they see. */
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
      await sink.upload(
        [{ name: "export.json", contentType: "application/json", bytes }],
        undefined,
        event.key,
        signal,
      );
    },
  };
}
