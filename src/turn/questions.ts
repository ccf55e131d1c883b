import type { Logger } from "pino";
import type { Continuation, History } from "../history/history.ts";
import type { HistoryEntry } from "../history/record.ts";
import {
  type ActionEvent,
  asksAnew,
  type DeletedEvent,
  type EarlierMessage,
  type EditedEvent,
  type InboundEvent,
  isSpokenStop,
  type MessageEvent,
} from "../port/events.ts";
import { readTurnId, toEditionId, toTurnId } from "../port/ids.ts";
import type { Button } from "../port/sink.ts";
import { isStoreOutage } from "../store/outage.ts";
import { readAnswer, rewriteClosing, takeBack } from "./posted-answer.ts";
import type { TurnRecord } from "./record.ts";
import type { TurnRecords, TurnServices } from "./records.ts";

/**
 * A turn's questions: which messages are answered together, how the history gets them, and how an edit or a deletion
 * changes their answer:
 * - While the answer is being written, `RunningTurn.notice` aborts the attempt. The next attempt answers the remaining
 *   questions. If none remains, `run` in `answers.ts` removes the answer.
 * - While the answer waits for a person, `changeWaiting` restarts or removes it.
 * - After the end, `askEdited` asks again, and `cancelDeleted` removes the answer or offers to remove it.
 */

const QUESTION_GONE = "_The question was deleted._";
/** Shown under an incomplete answer whose question was deleted. */
const PART_WITHOUT_QUESTION = "_The question was deleted. This answer is incomplete._";

/** The largest number of messages in a batch. A flood gets several turns, because one prompt would be too long. */
const MAX_BATCH_EVENTS = 20;

/**
 * Chooses which events in a conversation to handle next. `waiting` is oldest first. Combines one author's messages on
 * one branch with their edits, deletions and Stop, and an image request with its Stop. Every other event is handled
 * alone.
 */
export function takeBatch(waiting: readonly InboundEvent[]): InboundEvent[] {
  const [first, ...rest] = waiting;
  if (first === undefined) return [];
  if (first.lane?.kind === "drawing") {
    // A button that was pressed after a Stop asks for more pictures, so it does not belong to the stopped request.
    const next = rest.findIndex((event) => event.kind !== "action" || event.action !== "stop");
    return [first, ...(next < 0 ? rest : rest.slice(0, next))];
  }
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
    // A command or another person's message ends the batch. Later changes to the batch's messages still belong to it.
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
  if (isSpokenStop(event)) return event.author.id === author.id || event.author.isModerator === true;
  return event.kind === "action" && event.action === "stop" && event.turnId === turnId;
}

function belongs(event: MessageEvent, first: MessageEvent): boolean {
  if (event.isAnsweredAlone === true || first.isAnsweredAlone === true) return false;
  return event.author.id === first.author.id && (event.addressed === "other") === (first.addressed === "other");
}

/**
 * True if a message replies to no other message, to the last message of the batch, or to the same message as the first
 * one of the batch.
 */
function continuesBranch({ inReplyTo }: MessageEvent, batch: readonly InboundEvent[]): boolean {
  const [first] = batch;
  const last = batch.findLast((event) => event.kind === "message");
  const begun = first?.kind === "message" ? first.inReplyTo : undefined;
  return inReplyTo === undefined || inReplyTo === begun || inReplyTo === last?.messageId;
}

/** Returns the batch's messages after their edits, without deleted ones. */
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

/**
 * Splits a batch if an earlier attempt started with fewer messages. `own` are the messages of that attempt, or all
 * messages if it is unknown. `done` are the events that the turn finishes.
 */
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

export function toEntry({
  messageId,
  at,
  text,
  author,
  reply,
  attachments,
  quotes,
}: Omit<EarlierMessage, "by" | "isRoot"> & Pick<MessageEvent, "reply" | "quotes">): HistoryEntry {
  return {
    id: messageId,
    at,
    author: { platform: reply.platform, id: author.id, name: author.name },
    messages: [{ role: "user", content: text }],
    attachments,
    ...(quotes !== undefined && { quotes }),
  };
}

/**
 * Stores the questions in order. Stops at an outage, so that a later question never comes before an earlier one. The
 * bot follows the conversation from the first question that addresses it. `nothingUntil`: see `HeadNews`. Resolves to
 * true if all questions are stored. Never rejects.
 */
export async function storeQuestions(
  history: Pick<History, "append">,
  messages: readonly MessageEvent[],
  log: Logger,
  nothingUntil?: number,
): Promise<boolean> {
  let areStored = true;
  for (const { conversationId, entry, after, news } of toContinuations(messages, nothingUntil)) {
    try {
      await history.append(conversationId, entry, [], after, news);
    } catch (error) {
      areStored = false;
      log.error({ err: error, conversationId }, "a message could not be stored in the history");
      if (isStoreOutage(error)) break;
    }
  }
  return areStored;
}

/** Converts messages to arguments of `History.append`. The first message continues the branch that it replies to. */
export function toContinuations(
  messages: readonly MessageEvent[],
  nothingUntil?: number,
): Array<Continuation & { conversationId: string }> {
  const news = { nothingUntil, followedSince: messages.find(({ addressed }) => addressed === "bot")?.at };
  const isBranch = messages[0]?.inReplyTo !== undefined;
  return messages.map((message, index) => {
    const { conversationId, inReplyTo } = message;
    const after = index === 0 || !isBranch ? inReplyTo : messages[index - 1]?.messageId;
    return { conversationId, entry: toEntry(message), after, news };
  });
}

/** Leaves out messages that were deleted before they arrived. Keeps all if the store is unavailable. Never rejects. */
export async function withoutDeleted(
  history: Pick<History, "deletedOf">,
  messages: readonly MessageEvent[],
  log: Logger,
): Promise<readonly MessageEvent[]> {
  try {
    const deleted = await history.deletedOf(messages.map(({ messageId }) => messageId));
    return messages.filter(({ messageId }) => !deleted.includes(messageId));
  } catch (error) {
    log.warn({ err: error }, "the deletions that came before a message could not be read");
    return messages;
  }
}

export async function isQuestionGone(history: Pick<History, "find">, { messageIds }: TurnRecord): Promise<boolean> {
  const places = await Promise.all(messageIds.map((id) => history.find(id)));
  return places.every((place) => place === undefined);
}

export async function change(history: History, event: InboundEvent): Promise<void> {
  if (event.kind === "edited") await history.edit(event.messageId, event.text, event.attachments);
  if (event.kind === "deleted") await history.remove(event.messageId);
}

/** Applies a change to a question whose answer waits for approval. Resolves to false if the change has no effect. */
export async function changeWaiting(
  { records, history, ledger }: TurnServices,
  record: TurnRecord,
  event: EditedEvent | DeletedEvent,
): Promise<boolean> {
  const isFresh = record.phase === "final";
  if (isFresh && event.kind === "edited" && !(await isChanged(history, record, event))) return false;
  const calls = await ledger.open(record);
  Object.assign(record, { phase: "posted", attempts: 0, seen: 0 });
  if (event.kind === "deleted") {
    record.messageIds = record.messageIds.filter((id) => id !== event.messageId);
    // If no question is left, `takeBack` must remove the answer. It skips turns without attempts and messages.
    if (record.messageIds.length === 0) record.attempts = 1;
  }
  await records.save(record);
  await change(history, event);
  await calls.restart(true);
  return true;
}

/** True if an edit changes a message. Platforms also report edits that change nothing. */
async function isChanged(
  history: Pick<History, "read">,
  { conversationId }: Pick<TurnRecord, "conversationId">,
  { messageId, text, attachments }: Pick<EditedEvent, "messageId" | "text" | "attachments">,
): Promise<boolean> {
  const { entries } = await history.read(conversationId, { upToId: messageId, maxEntries: 1 });
  const before = entries.find(({ id }) => id === messageId);
  if (before === undefined) return false;
  const idsOf = (files: readonly { id: string }[] = []) => files.map(({ id }) => id).join();
  return before.messages[0]?.content !== text || idsOf(before.attachments) !== idsOf(attachments);
}

/**
 * Decides what an edit does to an ended answer. Resolves to the event that asks again, or to undefined if the edit
 * changes nothing. The caller must accept that event before it marks the edit as done.
 */
export async function askEdited(
  { records, history, ledger }: TurnServices,
  event: EditedEvent,
): Promise<ActionEvent | undefined> {
  const { key, conversationId, author, reply, at } = event;
  const record = await findEnded(records, event.messageId);
  if (record === undefined || !(await isChanged(history, record, event))) return undefined;
  await (await ledger.open(record)).restart(true);
  const turnId = toEditionId(record.id, record.edition);
  const again = { key: `${key}:again`, conversationId, author, reply, at, turnId };
  return { kind: "action", ...again, action: "regenerate", isSpoken: true };
}

/** Removes the answer to a deleted question, or offers to remove it, depending on the configuration. */
export async function cancelDeleted(
  deps: TurnServices & { removesWithQuestion: boolean },
  { messageId }: DeletedEvent,
  signal: AbortSignal,
): Promise<void> {
  const { records, history } = deps;
  const record = await findEnded(records, messageId);
  if (record === undefined || !(await isQuestionGone(history, record))) return;
  if (deps.removesWithQuestion) return takeBack(deps, record);
  const remove: Button = { action: "delete", turnId: record.id, label: "Delete this answer" };
  const isPartial = (await readAnswer(history, record))?.partial === true;
  const note = isPartial ? PART_WITHOUT_QUESTION : QUESTION_GONE;
  await rewriteClosing(deps, record, { note, buttons: [remove] }, signal);
}

async function findEnded(records: TurnRecords, messageId: string): Promise<TurnRecord | undefined> {
  const record = await records.answerTo(messageId);
  return record?.phase === "final" && !record.waits && record.posted.length > 0 ? record : undefined;
}

/** True if the bot itself removed this message, because a new answer needed fewer messages. */
export async function isLeftBehind({ records, history }: TurnServices, messageId: string): Promise<boolean> {
  const place = await history.find(messageId);
  const record = place && (await records.load(place.entryId));
  return record?.posted.includes(messageId) === false;
}
