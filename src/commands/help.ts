import { type Command, postNotice } from "./command.ts";

/** `/help`: says what the bot is and lists its commands, read when it runs, so that the list may contain this one. */
export function createHelpCommand(botName: string, commands: readonly Command[]): Command {
  return {
    name: "help",
    description: "Says what I can do.",
    async run(event, sink, signal) {
      const list = commands.map(({ name, description }) => `- \`/${name}\`: ${description}`).join("\n");
      const text = `I am ${botName}. Write to me, or mention me in a channel, and I answer; edit your message while I write and I begin again, delete it or say "stop" and I stop.\n\n${list}\n\nWhere a slash is not taken, as in some threads, begin with \`!\` instead, such as \`!help\`.`;
      await postNotice(sink, event, text, signal);
    },
  };
}
