import { createCatchUp } from "../catchup/catchup.ts";
import { neutralize } from "../text/neutralize.ts";
import { type Command, postNotice } from "./command.ts";

const NOT_ALONE =
  "Everyone here would see what you missed. Use the slash command `/catchup` instead: only you will see my answer.";

/** `/catchup`, `/catchup since monday`, `/catchup all`: privately summarises what the author has missed. */
export const CATCHUP: Command = {
  name: "catchup",
  description: "Summarise what you missed; only you see it.",
  usage: "nothing, since and a time, or all",
  shortcut: { title: "What did I miss?", textWithoutChannel: "all" },
  needs: "chat",
  create(deps) {
    const catchUp = createCatchUp(deps);
    return async (event, sink, signal) => {
      if (sink.traits?.isPublic === true) return postNotice(sink, event, NOT_ALONE, signal);
      for (const [index, markdown] of (await catchUp(event, sink.limits, signal)).entries()) {
        const draft = { markdown: neutralize(markdown), buttons: [], streaming: false };
        await sink.post(draft, index === 0 ? `${event.key}:notice` : `${event.key}:notice:${index}`, signal);
      }
    };
  },
};
