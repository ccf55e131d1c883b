import type { Logger } from "pino";
import type { Accept, InboundEvent } from "./adapter.ts";
import type { Answers } from "./answers.ts";
import type { History } from "./history.ts";
import type { Queue } from "./queue/queue.ts";

export interface IntakeDeps {
  queue: Pick<Queue, "accept" | "conversationOf">;
  history: Pick<History, "find">;
  answers: Pick<Answers, "conversationOf">;
  log: Logger;
}

/**
 * Takes events over for the adapters, each in the conversation it belongs to: a reply where the message it answers
 * is, an edit or a deletion where its message is. What is not known anywhere keeps the conversation it came with.
 */
export function createAccept({ queue, history, answers, log }: IntakeDeps): Accept {
  async function conversationOf(messageId: string): Promise<string | undefined> {
    const atHand = queue.conversationOf(messageId) ?? answers.conversationOf(messageId);
    if (atHand !== undefined) return atHand;
    try {
      return (await history.find(messageId))?.conversationId;
    } catch (error) {
      log.warn({ err: error, messageId }, "the conversation of a message could not be looked up");
      return undefined;
    }
  }

  return async (event) => {
    const messageId = toRelated(event);
    const conversationId = messageId === undefined ? undefined : await conversationOf(messageId);
    await queue.accept(conversationId === undefined ? event : { ...event, conversationId });
  };
}

/** The message whose conversation an event belongs to. */
function toRelated(event: InboundEvent): string | undefined {
  if (event.kind === "message") return event.inReplyTo;
  return event.kind === "edited" || event.kind === "deleted" ? event.messageId : undefined;
}
