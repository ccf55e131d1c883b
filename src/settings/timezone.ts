import { z } from "zod";
import type { Setting } from "./setting.ts";

/** `/timezone Europe/Berlin` sets the time zone of a channel's schedules, for people whose profile has none. */
export const TIMEZONE: Setting<string> = {
  schema: z.string().max(64),
  describe: (zone) => `Time zone: ${zone}`,
  command: {
    name: "timezone",
    description: "Show or set the time zone of schedules in this channel.",
    usage: "a name such as Europe/Berlin, or default",
    read(words) {
      if (words === "default") return {};
      return isZone(words) ? { value: words } : undefined;
    },
    toWord: (zone = "default") => zone,
    say: (zone) =>
      zone === undefined
        ? "This channel has no time zone set: `/schedule` uses the one in your profile, or asks you."
        : `Schedules in this channel use ${zone}, unless your profile has another one.`,
    hint: "To change this, add a name such as `Europe/Berlin`, or `default`.",
  },
};

export function isZone(name: string): boolean {
  try {
    return name !== "" && new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone !== "";
  } catch {
    return false;
  }
}
