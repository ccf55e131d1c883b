import type { Settings } from "../settings/settings.ts";
import { type Command, NOT_KEPT, postNotice, type SettingsRights } from "./command.ts";

const ON = "From now on I answer everything that people write in this channel; `/listen off` ends that.";
const OFF = "In this channel I answer only when I am mentioned; `/listen on` has me answer everything.";
const HINT = "Say `on` or `off` behind it. Bots are never answered without a mention.";

export interface ListenCommandDeps extends SettingsRights {
  settings: Pick<Settings, "isListening" | "setListening">;
}

/** `/listen on`, `/listen off`: the bot answers everything that people write in a channel, or only who mentions it. */
export function createListenCommand({ settings, access, audit }: ListenCommandDeps): Command {
  return {
    name: "listen",
    description: "I answer everything in this channel: on, or off.",
    async run(event, sink, signal) {
      const { text, reply } = event;
      const wanted = /^(on|off)$/i.exec(text.trim())?.[1]?.toLowerCase();
      const answer = async () => {
        if (wanted === undefined) return `${(await settings.isListening(reply)) ? ON : OFF} ${HINT}`;
        const refusal = await access.findRefusal(event, "settings");
        if (refusal !== undefined) return refusal;
        const before = (await settings.isListening(reply)) ? "on" : "off";
        if (!(await settings.setListening(reply, wanted === "on"))) return NOT_KEPT;
        await audit.note({ event, what: "listen", before, after: wanted });
        return wanted === "on" ? ON : OFF;
      };
      await postNotice(sink, event, await answer(), signal);
    },
  };
}
