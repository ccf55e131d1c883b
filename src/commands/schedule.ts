import type { ScheduleAction } from "../schedules/acts.ts";
import { type Command, postNotice } from "./command.ts";

const VERBS: Readonly<Record<string, ScheduleAction>> = {
  pause: "pause",
  resume: "resume",
  delete: "unschedule",
  remove: "unschedule",
};

/**
 * `/schedule weekdays at 9:00 what is open?` makes the bot do something, once or regularly. Without text, it lists the
 * schedules.
 */
export const SCHEDULE: Command = {
  name: "schedule",
  description: "Have me do something later or regularly, or list your schedules.",
  usage: "when and what; pause, resume, delete or change, and an id",
  create({ planner }) {
    return async (event, sink, signal) => {
      const [verb = "", id = "", ...rest] = event.text.trim().split(/\s+/);
      const action = VERBS[verb.toLowerCase()];
      const isChange = verb.toLowerCase() === "change";
      if (verb === "" || (verb.toLowerCase() === "list" && id === "")) {
        return postNotice(sink, event, await planner.list(event), signal);
      }
      const place = { sink, nonce: `${event.key}:notice`, isPrivate: event.reply.isDirect !== true };
      if (action !== undefined && rest.length === 0) {
        const shown = await planner.act(event, action, id.toLowerCase(), signal);
        return planner.show(shown, place, signal);
      }
      const wish = isChange ? { words: rest.join(" "), replaces: id.toLowerCase() } : { words: event.text };
      await planner.show(await planner.propose({ ...event, ...wish }), place, signal);
    };
  },
};
