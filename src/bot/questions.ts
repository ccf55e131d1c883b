import type { InboundEvent, MessageEvent } from "../port/events.ts";
import type { Batch } from "../turn/answers.ts";
import { foldBatch } from "../turn/questions.ts";
import type { BotParts } from "./deps.ts";
import type { Refusal } from "./gate.ts";

/** Answers the messages to the bot and stores all other messages. Resolves to the events that are finished. */
export async function answerMessages(
  deps: BotParts,
  { events, ...how }: Omit<Batch, "messages">,
  signal: AbortSignal,
): Promise<readonly InboundEvent[]> {
  const messages = foldBatch(events);
  if (messages[0]?.addressed === "other") {
    await deps.history.setFollowed(messages[0].conversationId, false);
    await deps.answers.overhear(messages);
    return events;
  }
  let refusal: Refusal | undefined;
  // Do not await this here: the turn must be registered first, or an edit or a Stop during the check would miss it.
  async function isWanted(): Promise<boolean> {
    const [first] = events;
    if (first === undefined) return false;
    // Check the first message that was not deleted, in its current version. Keep the first event's key, because the
    // turn is named after it.
    refusal = await deps.gate.findRefusal({ ...(messages[0] ?? first), key: first.key });
    return refusal === undefined && isForUs(deps, messages);
  }
  const done = await deps.answers.answer({ events, messages, ...how }, isWanted(), signal);
  if (refusal !== undefined) await notifyRefused(deps, messages, refusal, signal);
  return done;
}

/** Sends a refusal only if the author asked the bot; people who talk to each other get none. */
async function notifyRefused(
  { waiting, gate }: BotParts,
  messages: readonly MessageEvent[],
  refusal: Refusal,
  signal: AbortSignal,
): Promise<void> {
  waiting.clear(messages);
  const question = messages.find(({ addressed, isListenedTo }) => addressed === "bot" && isListenedTo !== true);
  if (question !== undefined) await gate.tell(question, refusal, signal);
}

/**
 * True if the bot should answer: someone addressed it, or the bot follows the conversation and the message addresses no
 * one.
 */
async function isForUs({ history, log }: BotParts, messages: MessageEvent[]): Promise<boolean> {
  const conversationId = messages[0]?.conversationId;
  if (conversationId === undefined || messages.some(({ addressed }) => addressed === "bot")) return true;
  try {
    // Use the message's own time, because a message written before the question can arrive after the question.
    return await history.isFollowed(conversationId, messages.at(-1)?.at);
  } catch (error) {
    log.warn({ err: error, conversationId }, "the follow state of a conversation could not be read");
    return false;
  }
}
