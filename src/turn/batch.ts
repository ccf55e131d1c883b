import { asksAnew, type InboundEvent, isSpokenStop, type MessageEvent } from "../port/events.ts";
import { readTurnId, toTurnId } from "../port/ids.ts";

/** Messages answered by one turn at most: a flood is answered in several turns rather than in one endless prompt. */
const MAX_BATCH_EVENTS = 20;

/**
 * Chooses the next events of a conversation, oldest first: messages of one author on one branch together, with their
 * edits and deletions and a stop, unless they get an answer of their own. Anything else alone.
 */
export function takeBatch(waiting: readonly InboundEvent[]): InboundEvent[] {
  const [first, ...rest] = waiting;
  if (first === undefined) return [];
  if (asksAnew(first)) {
    const turnId = readTurnId(first.turnId);
    return [first, ...rest.filter((event) => isStopOf(event, turnId, first))];
  }
  if (first.kind !== "message") return [first];

  const turnId = toTurnId(first.key);
  const batch: InboundEvent[] = [first];
  const ids = new Set([first.messageId]);
  let open = true;
  for (const event of rest) {
    if (event.kind === "edited" || event.kind === "deleted") {
      if (ids.has(event.messageId)) batch.push(event);
      continue;
    }
    if (isStopOf(event, turnId, first)) {
      batch.push(event);
      continue;
    }
    // A command or somebody else's word in between ends what is answered together, not what is changed in it.
    const isTogether = event.kind === "message" && belongs(event, first) && continuesBranch(event, batch);
    if (!isTogether || ids.size >= MAX_BATCH_EVENTS) open = false;
    else if (open) {
      batch.push(event);
      ids.add(event.messageId);
    }
  }
  return batch;
}

function isStopOf(event: InboundEvent, turnId: string, { author }: InboundEvent): boolean {
  // Somebody else's is answered by itself.
  if (isSpokenStop(event)) return event.author.id === author.id || event.author.isModerator === true;
  return event.kind === "action" && event.action === "stop" && event.turnId === turnId;
}

function belongs(event: MessageEvent, first: MessageEvent): boolean {
  if (event.isAnsweredAlone === true || first.isAnsweredAlone === true) return false;
  return event.author.id === first.author.id && (event.addressed === "other") === (first.addressed === "other");
}

/** True for a message said to nothing in particular, or to the first or last message of the batch. */
function continuesBranch({ inReplyTo }: MessageEvent, batch: readonly InboundEvent[]): boolean {
  const [first] = batch;
  const last = batch.findLast((event) => event.kind === "message");
  const begun = first?.kind === "message" ? first.inReplyTo : undefined;
  return inReplyTo === undefined || inReplyTo === begun || inReplyTo === last?.messageId;
}

/** The messages of a batch as they stand after its edits, without those that were deleted. */
export function foldBatch(batch: readonly InboundEvent[]): MessageEvent[] {
  const messages = new Map<string, MessageEvent>();
  for (const event of batch) {
    if (event.kind === "message") messages.set(event.messageId, event);
    if (event.kind === "deleted") messages.delete(event.messageId);
    if (event.kind !== "edited") continue;
    const message = messages.get(event.messageId);
    if (message !== undefined) {
      const { text, attachments, addressed = message.addressed } = event;
      messages.set(event.messageId, { ...message, text, attachments, addressed });
    }
  }
  return [...messages.values()];
}

/** Splits a batch: `own` are the earlier attempt's messages, all if unknown; `done` are events that the turn ends. */
export function splitBatch(
  events: readonly InboundEvent[],
  messages: readonly MessageEvent[],
  begun: readonly string[] | undefined,
): { own: readonly MessageEvent[]; done: readonly InboundEvent[] } {
  const later = new Set(messages.map(({ messageId }) => messageId).filter((id) => begun?.includes(id) === false));
  const done = events.filter((event) => !("messageId" in event && later.has(event.messageId)));
  if (done[0] !== events[0]) return { own: messages, done: events };
  return { own: messages.filter(({ messageId }) => !later.has(messageId)), done };
}
