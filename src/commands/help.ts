import { type Command, postNotice, toList } from "./command.ts";

export const HELP: Command = {
  name: "help",
  description: "Show what I can do.",
  fields: [],
  create({ botName, commands, settings }) {
    const list = toList(commands.map(({ name, description }) => `\`/${name}\`: ${description}`));
    const text = `I'm ${botName}. Write to me, or mention me in a channel, and I'll answer. If you edit your message while I'm writing, I start over; if you delete it or say "stop", I stop.\n\n${list}\n\nIf slash commands don't work, as in some threads, start with \`!\` instead: \`!help\`.`;
    return async (event, sink, signal) => {
      const { prompts } = await settings.read(event.reply);
      const suggested = prompts === undefined ? "" : `\n\nYou could ask me:\n${toList(prompts)}`;
      await postNotice(sink, event, text + suggested, signal);
    };
  },
};
