import type { History } from "../history/history.ts";
import { type Command, postNotice } from "./command.ts";

/** `/quiet`: the bot answers in this conversation only when it is addressed. */
export function createQuietCommand(history: History): Command {
  return {
    name: "quiet",
    description: "I stay silent in this conversation until I am mentioned again.",
    async run(event, sink, signal) {
      await history.setFollowed(event.conversationId, false);
      await postNotice(
        sink,
        event,
        "I stay silent here until somebody mentions me. Where you write to me alone, I always answer.",
        signal,
      );
    },
  };
}
