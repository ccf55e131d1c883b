import { z } from "zod";
import type { Setting } from "./setting.ts";

const CHOICES = ["on", "off"].map((value) => ({ name: value, value }));

/** With `/listen on`, the bot answers every message in a channel. With `/listen off`, it answers only mentions. */
export const LISTENS: Setting<true> = {
  schema: z.literal(true),
  describe: () => "Answers every message that is not for someone else",
  command: {
    name: "listen",
    description: "Set whether I answer every message in this channel: on, or off.",
    usage: "on, or off",
    fields: [
      { name: "what", description: "Whether I answer every message in this channel", kind: "text", choices: CHOICES },
    ],
    read(words) {
      if (/^on$/i.test(words)) return { value: true };
      return /^off$/i.test(words) ? {} : undefined;
    },
    toWord: (value) => (value ? "on" : "off"),
    say: (value) =>
      value
        ? "From now on, I'll answer every message in this channel; `/listen off` undoes this."
        : "In this channel, I answer only when I'm mentioned; `/listen on` makes me answer every message.",
    hint: "Add `on` or `off` to change this. I answer bots only when they mention me.",
  },
};
