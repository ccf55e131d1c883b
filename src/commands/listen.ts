import type { Settings } from "../settings/settings.ts";
import { type Command, mayConfigure, NOT_ALLOWED, NOT_KEPT, postNotice } from "./command.ts";

const ON = "From now on I answer everything that people write in this channel; `/listen off` ends that.";
const OFF = "In this channel I answer only when I am mentioned; `/listen on` has me answer everything.";
const HINT = "Say `on` or `off` behind it. Bots are never answered without a mention.";

/** `/listen on`, `/listen off`: the bot answers everything that people write in a channel, or only who mentions it. */
export function createListenCommand(settings: Pick<Settings, "isListening" | "setListening">): Command {
  return {
    name: "listen",
    description: "I answer everything in this channel: on, or off.",
    async run(event, sink, signal) {
      const { text, reply, author } = event;
      const wanted = /^(on|off)$/i.exec(text.trim())?.[1]?.toLowerCase();
      const answer = async () => {
        if (wanted === undefined) return `${(await settings.isListening(reply)) ? ON : OFF} ${HINT}`;
        if (!mayConfigure(author)) return NOT_ALLOWED;
        if (!(await settings.setListening(reply, wanted === "on"))) return NOT_KEPT;
        return wanted === "on" ? ON : OFF;
      };
      await postNotice(sink, event, await answer(), signal);
    },
  };
}
