import type { Logger } from "pino";
import type { History } from "../history/history.ts";
import type { ActionEvent, MessageEvent } from "../port/events.ts";
import { toEntry } from "./context.ts";
import type { TurnRecord } from "./record.ts";

/**
 * Stores the messages that are answered together. The first continues the branch that ends at the message it replies
 * to, and the others follow it there.
 */
export async function storeQuestions(
  history: Pick<History, "append">,
  messages: readonly MessageEvent[],
  log: Logger,
): Promise<void> {
  const isBranch = messages[0]?.inReplyTo !== undefined;
  for (const [index, message] of messages.entries()) {
    const { conversationId, inReplyTo } = message;
    const after = index === 0 || !isBranch ? inReplyTo : messages[index - 1]?.messageId;
    try {
      await history.append(conversationId, toEntry(message), [], after);
    } catch (error) {
      log.error({ err: error, conversationId }, "a message could not be stored in the history");
    }
  }
}

/** Whether nothing is left of what a turn answers. */
export async function isQuestionGone(history: Pick<History, "find">, { messageIds }: TurnRecord): Promise<boolean> {
  const places = await Promise.all(messageIds.map((id) => history.find(id)));
  return places.every((place) => place === undefined);
}

/** What a person asks who wants an answer to go on. The same press makes the same question. */
export function toQuestion({ key, author, at }: ActionEvent, record: TurnRecord): MessageEvent {
  const { conversationId, reply, posted } = record;
  const inReplyTo = posted.at(-1);
  return {
    kind: "message",
    key: `${key}:continue`,
    messageId: `${reply.platform}:continue:${key}`,
    conversationId,
    author,
    reply,
    at,
    text: "Go on exactly where you stopped.",
    attachments: [],
    addressed: "bot",
    // What was said after that answer is not what it goes on with.
    ...(inReplyTo !== undefined && { inReplyTo }),
  };
}
