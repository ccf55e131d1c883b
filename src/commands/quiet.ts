import type { History } from "../history/history.ts";
import type { Audit } from "../policy/audit.ts";
import { type Command, postNotice } from "./command.ts";

/** `/quiet`: the bot answers in this conversation only when it is addressed. */
export function createQuietCommand(
  history: Pick<History, "isFollowed" | "setFollowed">,
  audit: Pick<Audit, "note">,
): Command {
  return {
    name: "quiet",
    description: "I stay silent in this conversation until I am mentioned again.",
    async run(event, sink, signal) {
      const wasFollowed = await history.isFollowed(event.conversationId);
      await history.setFollowed(event.conversationId, false);
      if (wasFollowed) await audit.note({ event, what: "quiet", before: "off", after: "on" });
      await postNotice(
        sink,
        event,
        "I stay silent here until somebody mentions me. Where you write to me alone, I always answer.",
        signal,
      );
    },
  };
}
