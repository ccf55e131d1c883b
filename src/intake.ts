import type { Logger } from "pino";
import type { Accept, ActionEvent, InboundEvent } from "./adapter.ts";
import type { Answers } from "./answers.ts";
import type { History } from "./history.ts";
import type { Queue } from "./queue/queue.ts";
import type { TurnRecords } from "./turn-record.ts";

export interface IntakeDeps {
  queue: Pick<Queue, "accept" | "conversationOf">;
  history: Pick<History, "find">;
  answers: Pick<Answers, "conversationOf">;
  records: Pick<TurnRecords, "load">;
  log: Logger;
}

/**
 * Takes events over for the adapters, each in the conversation it belongs to: a reply where the message it answers
 * is, an edit or a deletion where its message is, a button where its turn is. What is not known anywhere keeps the conversation it came with.
 */
export function createAccept({ queue, history, answers, records, log }: IntakeDeps): Accept {
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

  async function conversationOfTurn({ turnId }: ActionEvent): Promise<string | undefined> {
    try {
      return (await records.load(turnId))?.conversationId;
    } catch (error) {
      log.warn({ err: error, turnId }, "the conversation of a turn could not be looked up");
      return undefined;
    }
  }

  async function find(event: InboundEvent): Promise<string | undefined> {
    if (event.kind === "action") return conversationOfTurn(event);
    const messageId = toRelated(event);
    return messageId === undefined ? undefined : conversationOf(messageId);
  }

  return async (event) => {
    const conversationId = await find(event);
    await queue.accept(conversationId === undefined ? event : { ...event, conversationId });
  };
}

/** The message whose conversation an event belongs to. */
function toRelated(event: InboundEvent): string | undefined {
  if (event.kind === "message") return event.inReplyTo;
  return event.kind === "edited" || event.kind === "deleted" ? event.messageId : undefined;
}
