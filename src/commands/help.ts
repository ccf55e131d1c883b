import type { ReadPersona } from "../port/catalogue.ts";
import { type Command, postNotice, toList } from "./command.ts";

/** `/help`: lists the commands when it runs, so that the list may contain this one, and the channel's prompts. */
export function createHelpCommand(botName: string, commands: readonly Command[], readPersona: ReadPersona): Command {
  return {
    name: "help",
    description: "Says what I can do.",
    async run(event, sink, signal) {
      const list = commands.map(({ name, description }) => `- \`/${name}\`: ${description}`).join("\n");
      const text = `I am ${botName}. Write to me, or mention me in a channel, and I answer; edit your message while I write and I begin again, delete it or say "stop" and I stop.\n\n${list}\n\nWhere a slash is not taken, as in some threads, begin with \`!\` instead, such as \`!help\`.`;
      const { prompts } = await readPersona(event.reply);
      const suggested = prompts === undefined ? "" : `\n\nAsk me, for example:\n${toList(prompts)}`;
      await postNotice(sink, event, text + suggested, signal);
    },
  };
}
