import type { Logger } from "pino";
import type { ActionEvent, Adapter, Author, EditedEvent, InboundEvent, MessageEvent } from "./adapter.ts";
import type { Attempt, AttemptResult } from "./attempt.ts";
import { toEntry } from "./context.ts";
import type { History } from "./history.ts";
import { type TurnRecord, type TurnRecords, toTurnId } from "./turn-record.ts";

export interface Answers {
  /** Answers messages together; their batch begins the turn. Rejects when the reply could not be written, to be called again. */
  answer(batch: readonly InboundEvent[], messages: MessageEvent[], signal: AbortSignal): Promise<void>;
  /** Takes back what an earlier run posted for a batch whose messages are all deleted. */
  cancel(batch: readonly InboundEvent[]): Promise<void>;
  /** Answers a turn's messages once more, in the same place. Resolves to a sentence when that is refused. */
  retry(event: ActionEvent, signal: AbortSignal): Promise<string | undefined>;
  /** Lets an edit, a deletion or a stop reach the answer that is being written. */
  interrupt(event: InboundEvent): void;
}

export interface AnswersDeps {
  records: TurnRecords;
  history: History;
  adapterOf(platform: string): Adapter;
  attempt: Attempt;
  log: Logger;
}

/** An answer that is being written. */
interface Running {
  record: TurnRecord;
  controller: AbortController;
  /** Changes that came since the attempt began. */
  edits: EditedEvent[];
  deleted: Set<string>;
  /** Text and attachments of each message, where they are known: what tells an edit from an echo. */
  bodies: Map<string, string>;
}

export function createAnswers({ records, history, adapterOf, attempt, log }: AnswersDeps): Answers {
  const running = new Map<string, Running>();

  /** Attempts until one ends the turn: each edit of what is being answered begins another one in the same messages. */
  async function run(record: TurnRecord, messages: MessageEvent[], signal: AbortSignal): Promise<void> {
    const bodies = new Map(messages.map((message) => [message.messageId, bodyOf(message)]));
    const turn: Running = { record, controller: new AbortController(), edits: [], deleted: new Set(), bodies };
    running.set(record.id, turn);
    try {
      let result: AttemptResult;
      do {
        turn.controller = new AbortController();
        await applyChanges(turn);
        if (record.messageIds.length === 0) return await takeBack(record);
        result = await attempt(record, messages, turn.controller, signal);
      } while (result === "superseded");
    } finally {
      running.delete(record.id);
    }
  }

  async function applyChanges({ record, edits, deleted }: Running): Promise<void> {
    for (const { messageId, text, attachments } of edits.splice(0)) await history.edit(messageId, text, attachments);
    for (const messageId of deleted) await history.remove(messageId);
    record.messageIds = record.messageIds.filter((id) => !deleted.has(id));
    deleted.clear();
  }

  /** Removes what was written for a turn that nobody asks for any more. */
  async function takeBack(record: TurnRecord): Promise<void> {
    const sink = adapterOf(record.reply.platform).sink(record.reply);
    for (const id of record.posted.toReversed()) {
      await sink.remove(id, AbortSignal.timeout(15_000)).catch((error: unknown) => {
        log.warn({ err: error, turnId: record.id }, "a message of a cancelled answer could not be removed");
      });
    }
    await history.remove(record.id);
    await records.save({ ...record, posted: [], phase: "final" });
  }

  return {
    async answer(batch, messages, signal) {
      const [first] = batch;
      const last = messages.at(-1);
      if (first === undefined || last === undefined) return;
      const id = toTurnId(first.key);
      const known = await loadRecord(records, id, log);
      if (known?.phase === "final") return;
      const record: TurnRecord = {
        v: 1,
        id,
        conversationId: last.conversationId,
        reply: last.reply,
        author: last.author,
        messageIds: messages.map(({ messageId }) => messageId),
        posted: known?.posted ?? [],
        phase: known?.phase ?? "received",
        attempts: known?.attempts ?? 0,
      };
      for (const message of messages) await remember(history, message, log);
      await run(record, messages, signal);
    },

    async cancel(batch) {
      const [first] = batch;
      if (first === undefined) return;
      const record = await loadRecord(records, toTurnId(first.key), log);
      for (const event of batch) if (event.kind === "deleted") await history.remove(event.messageId);
      if (record !== undefined && record.phase !== "final") await takeBack(record);
    },

    async retry(event, signal) {
      const record = await records.load(event.turnId);
      if (record === undefined) return "This answer is too old to be written again. Please ask once more.";
      if (!mayPress(event.author, record)) return "Only the person who asked, or a moderator, can do that.";
      if (record.messageIds.length === 0) return "The question was deleted.";
      await run({ ...record, phase: "posted", attempts: 0 }, [], signal);
      return undefined;
    },

    interrupt(event) {
      for (const turn of running.values()) interruptTurn(turn, event);
    },
  };
}

function interruptTurn(turn: Running, event: InboundEvent): void {
  const { record, controller, edits, deleted, bodies } = turn;
  if (event.kind === "action" && event.action === "stop" && event.turnId === record.id) {
    if (mayPress(event.author, record)) controller.abort("stopped");
  }
  if (event.kind !== "edited" && event.kind !== "deleted") return;
  if (!record.messageIds.includes(event.messageId)) return;
  if (event.kind === "edited") {
    // Platforms send an edit also for what they add themselves, such as a preview.
    if (bodies.get(event.messageId) === bodyOf(event)) return;
    bodies.set(event.messageId, bodyOf(event));
    edits.push(event);
  } else {
    deleted.add(event.messageId);
  }
  controller.abort("superseded");
}

function bodyOf({ text, attachments }: MessageEvent | EditedEvent): string {
  return JSON.stringify([text, attachments.map(({ id }) => id)]);
}

function mayPress(author: Author, record: TurnRecord): boolean {
  return author.id === record.author.id || author.isModerator === true;
}

/** A store that is out of reach must not keep an answer back: without a record the turn begins anew. */
async function loadRecord(records: TurnRecords, id: string, log: Logger): Promise<TurnRecord | undefined> {
  try {
    return await records.load(id);
  } catch (error) {
    log.error({ err: error, turnId: id }, "the record of a turn could not be read");
    return undefined;
  }
}

async function remember(history: History, message: MessageEvent, log: Logger): Promise<void> {
  const { conversationId } = message;
  try {
    await history.append(conversationId, toEntry(message));
  } catch (error) {
    log.error({ err: error, conversationId }, "a message could not be stored in the history");
  }
}
