import { type Command, postNotice } from "./command.ts";

const SAID = "I'll stay silent here until someone mentions me. In direct messages, I always answer.";

/** `/quiet` makes the bot stop following this conversation, so that it answers only mentions. */
export const QUIET: Command = {
  name: "quiet",
  description: "Keep me silent in this conversation until I'm mentioned again.",
  fields: [],
  needs: "chat",
  create({ history, audit }) {
    return async (event, sink, signal) => {
      const wasFollowed = await history.isFollowed(event.conversationId);
      await history.setFollowed(event.conversationId, false);
      if (wasFollowed) await audit.note({ event, what: "quiet", before: "off", after: "on" });
      await postNotice(sink, event, SAID, signal);
    };
  },
};
