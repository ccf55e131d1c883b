import type { Logger } from "pino";
import { isTakenUp } from "../concurrency/fence.ts";
import { persist } from "../concurrency/retry.ts";
import type { History } from "../history/history.ts";
import type { TurnWatch } from "../insight/turn-watch.ts";
import type { Adapter } from "../port/adapter.ts";
import type { ActionEvent, DeletedEvent, EditedEvent, InboundEvent, MessageEvent } from "../port/events.ts";
import { readEditionId, readTurnId } from "../port/ids.ts";
import type { SinkOf } from "../reply/paced-sink.ts";
import type { Ledger } from "../tools/ledger.ts";
import type { Attempt } from "./attempt.ts";
import { splitBatch } from "./batch.ts";
import { isQuestionGone, storeQuestions, withoutDeleted } from "./context.ts";
import { showRefusal, takeClosingOff } from "./cut-answer.ts";
import type { BringEarlier, Overhear } from "./earlier.ts";
import { editionOf, readAnswer } from "./editions.ts";
import { newRecord, type TurnRecord, type TurnRecords } from "./record.ts";
import { mayPress, NOT_YOURS, toPressedReply } from "./rights.ts";
import { type AttemptResult, createRunningTurn, type RunningTurn } from "./running.ts";
import { forgetSaid } from "./said.ts";
import { isChanged } from "./second-thoughts.ts";
import { removePosted, takeBack } from "./take-back.ts";
import { cancelWaiting, decideCalls } from "./tool-approval.ts";
import type { UnkeptAnswers } from "./unkept.ts";
import type { WaitingMarks } from "./waiting-marks.ts";

export interface Answers {
  /**
   * Answers a batch once `isWanted` says so, else keeps it as overheard; a batch of deleted messages takes its answer
   * back. Resolves to the finished events: a turn that was begun before ends without later ones. Rejects when the reply
   * could not be written, to be called again.
   */
  answer(batch: Batch, isWanted: Promise<boolean>, signal: AbortSignal): Promise<readonly InboundEvent[]>;
  /** Keeps messages that are said to somebody else, see `Overhear`. */
  overhear: Overhear;
  /** Answers a turn's messages once more in the same place, or continues it after a decision about its calls. */
  retry(event: ActionEvent, batch: Omit<Batch, "messages">, signal: AbortSignal): Promise<Retried>;
  /** Applies a change to a question whose answer waits for a person. Resolves to whether there was one. */
  reconsider(event: EditedEvent | DeletedEvent, signal: AbortSignal): Promise<boolean>;
  /** The question that continues a cut answer, the same for the same event; a sentence when that is refused. */
  toContinuation(event: ActionEvent): Promise<MessageEvent | string>;
  /** Notes that the question was accepted: no further press makes another one, and the button goes. */
  continued(event: ActionEvent, signal: AbortSignal): Promise<void>;
  /** Resolves to the sentence for a stop after the end. The press may show an end that the place had refused. */
  stopLate(event: ActionEvent, signal: AbortSignal): Promise<string>;
  /** Lets a change or a stop reach the running answer. Returns a sentence if that stop is not the author's. */
  interrupt(event: InboundEvent): string | undefined;
  /** True while an answer is being written in this conversation, by this process. */
  isAnswering(conversationId: string): boolean;
  /** The conversation of an answer that is being written, by one of its messages or one that it answers. */
  conversationOf(messageId: string): string | undefined;
}

/** Events that are worked on together, and the messages they amount to. */
export interface Batch {
  events: readonly InboundEvent[];
  messages: readonly MessageEvent[];
  /** No model is asked any more: the answer says so, and that is all. */
  isGivenUp?: true;
}

export interface Retried {
  done: readonly InboundEvent[];
  /** A sentence for the person, when it is not done. */
  refusal?: string;
}

const HAS_ENDED = "This answer has ended already.";
const TOO_LONG = "_Your message was too long: I have read its beginning and its end. Send the rest as a file._";
const NOT_TAKEN =
  "I cannot write to this answer any more: its place may be closed to me, or too much time has passed. Please ask once more.";

export interface AnswersDeps {
  records: TurnRecords;
  ledger: Ledger;
  history: History;
  unkept: Pick<UnkeptAnswers, "replay">;
  adapterOf(platform: string): Adapter;
  sinkOf: SinkOf;
  attempt: Attempt;
  bringEarlier: BringEarlier;
  overhear: Overhear;
  waiting: Pick<WaitingMarks, "clear">;
  watch: Pick<TurnWatch, "makeUp">;
  log: Logger;
}

export function createAnswers(deps: AnswersDeps): Answers {
  const { records } = deps;
  const running = new Set<RunningTurn>();

  /** A turn counts as running before its first wait, so that no interruption is missed. */
  async function whileRunning<T>(turn: RunningTurn, work: () => Promise<T>): Promise<T> {
    running.add(turn);
    try {
      return await work();
    } finally {
      running.delete(turn);
    }
  }

  async function askAgain(
    record: TurnRecord,
    { events, isGivenUp }: Omit<Batch, "messages">,
    signal: AbortSignal,
  ): Promise<Retried> {
    // A turn that crashed on the way is no new beginning.
    const fresh = record.phase === "final" ? { attempts: 0, seen: 0 } : {};
    const how = { mustAsk: true, pressedBy: events[0]?.author };
    const turn = createRunningTurn({ ...record, phase: "posted", ...fresh }, [], how);
    for (const other of events) turn.notice(other);
    if (isGivenUp) turn.giveUp();
    await whileRunning(turn, () => run(deps, turn, signal));
    const done = [...events, ...turn.taken()];
    return turn.record.isRefused === true ? { done, refusal: NOT_TAKEN } : { done };
  }

  return {
    overhear: deps.overhear,
    answer(batch, isWanted, signal) {
      const turn = createRunningTurn(newRecord(batch.events, batch.messages), batch.messages);
      if (batch.isGivenUp) turn.giveUp();
      return whileRunning(turn, async () => {
        if (await isWanted) return proceed(deps, turn, batch, signal);
        await deps.overhear(batch.messages);
        return batch.events;
      });
    },

    async retry(event, batch, signal) {
      const { events } = batch;
      const turnId = readTurnId(event.turnId);
      const record = await records.load(turnId);
      if (record === undefined)
        return refuse(events, "This answer is too old to be written again. Please ask once more.");
      await countEarlierEnd(deps, record);
      if (!mayPress(event, record)) return refuse(events, NOT_YOURS);
      record.reply = toPressedReply(event, record, record.posted.length);
      const isRunning = running.values().some((turn) => turn.record.id === record.id);
      const orphaned = await endOrphan(deps, record, events, isRunning);
      if (orphaned !== undefined) return orphaned;
      // Pressed twice: the answer is on its way.
      if (isRunning) return { done: events };
      const again = await prepareAgain(deps, event, record, signal);
      if (again !== "go on") return again === "done" ? { done: events } : refuse(events, again);
      return askAgain(record, batch, signal);
    },

    async reconsider(event, signal) {
      const record = await records.answerTo(event.messageId);
      if (record !== undefined) await countEarlierEnd(deps, record);
      if (record?.waits === undefined) return false;
      if (await takeUpChange(deps, record, event)) await askAgain(record, { events: [event] }, signal);
      return true;
    },

    async stopLate(event, signal) {
      const record = await records.load(event.turnId);
      if (record?.waits && record.phase === "final" && mayPress(event, record)) {
        await cancelWaiting(deps, record, signal);
        return "Stopped: what waited for your word is not done.";
      }
      const isUnseen = record?.phase === "final" && record.isRefused === true && mayPress(event, record);
      // A place that takes no messages may still let a button change the one it stands under.
      if (isUnseen && (await showRefusal(deps, { ...record, reply: event.reply }, signal))) {
        await records.save({ ...record, isRefused: false });
      }
      return HAS_ENDED;
    },

    async toContinuation(event) {
      const record = await records.load(event.turnId);
      if (record === undefined) return "This answer is too old to go on with. Please ask once more.";
      if (!mayPress(event, record)) return NOT_YOURS;
      if (!record.canContinue) return "This answer is being continued already.";
      return toContinuationEvent(event, record);
    },

    async continued(event, signal) {
      const record = await records.load(event.turnId);
      if (record === undefined) return;
      record.reply = toPressedReply(event, record, record.posted.length);
      await records.save({ ...record, canContinue: false });
      await takeClosingOff(deps, record, signal);
    },

    interrupt(event) {
      let isRefused = false;
      for (const turn of running) if (turn.notice(event) === "refused") isRefused = true;
      return isRefused ? NOT_YOURS : undefined;
    },

    isAnswering: (conversationId) => running.values().some(({ record }) => record.conversationId === conversationId),

    conversationOf(messageId) {
      const isOf = ({ record }: RunningTurn) =>
        record.posted.includes(messageId) || record.messageIds.includes(messageId);
      return running.values().find(isOf)?.record.conversationId;
    },
  };
}

/** Ends a request to ask again when the question was deleted. Undefined while the question exists. */
async function endOrphan(
  deps: AnswersDeps,
  record: TurnRecord,
  events: readonly InboundEvent[],
  isRunning: boolean,
): Promise<Retried | undefined> {
  if (!(await isQuestionGone(deps.history, record))) return undefined;
  if (record.phase === "final" || isRunning) return refuse(events, "The question was deleted.");
  // An earlier attempt was to take the answer back, and did not come to the end of that.
  await takeBack(deps, record);
  return { done: events };
}

/** Counts the end of an earlier attempt, whose process may have died before it did. */
async function countEarlierEnd({ records, watch, log }: AnswersDeps, record: Partial<TurnRecord>): Promise<void> {
  const { id, conversationId, reply, author, ends = [], posted = [], phase } = record;
  const outcome = ends.at(-1);
  if (phase !== "final" || outcome === undefined || !id || !conversationId || !reply || !author) return;
  try {
    const { at = Date.now(), model = "", calls = [], tokens } = (await records.readSight(id)) ?? {};
    const used = {
      promptTokens: tokens?.prompt ?? 0,
      completionTokens: tokens?.completion ?? 0,
      estimatedTokens: tokens?.estimated ?? 0,
    };
    const end = { number: ends.length, at, outcome, messages: posted.length, used, calls };
    await watch.makeUp({ turnId: id, conversationId, reply, author, model, ...end });
  } catch (err) {
    log.warn({ err, turnId: id }, "the end of a turn could not be counted");
  }
}

/** An answer that is whole is kept beside the next one; what broke off makes way for it. */
async function toNextEdition({ history }: AnswersDeps, record: TurnRecord): Promise<number> {
  const answer = await readAnswer(history, record);
  if (answer === undefined || answer.partial === true || answer.messages.length === 0) return record.edition;
  return editionOf(answer) + 1;
}

function refuse(done: readonly InboundEvent[], refusal: string): Retried {
  return { done, refusal };
}

/** Readies a turn for another answer. Resolves to "go on", to "done" if an earlier press did it, or to a refusal. */
async function prepareAgain(
  deps: AnswersDeps,
  event: ActionEvent,
  record: TurnRecord,
  signal: AbortSignal,
): Promise<string> {
  const calls = await deps.ledger.open(record.id);
  if (event.action !== "retry" && event.action !== "regenerate") return decideCalls(deps, event, record, calls, signal);
  if (record.phase !== "final") return "go on";
  const { edition } = readEditionId(event.turnId);
  const isAnother = edition === undefined ? !record.canRetry : edition !== record.edition;
  if (isAnother) return "done";
  await calls.restart(false);
  record.edition = await toNextEdition(deps, record);
  return "go on";
}

/** Applies a change to a question whose answer waits for a person. False: it changes nothing. */
async function takeUpChange(
  { records, history, ledger }: AnswersDeps,
  record: TurnRecord,
  event: EditedEvent | DeletedEvent,
): Promise<boolean> {
  const isFresh = record.phase === "final";
  if (isFresh && event.kind === "edited" && !(await isChanged(history, record, event))) return false;
  const calls = await ledger.open(record.id);
  Object.assign(record, { phase: "posted", attempts: 0, seen: 0 });
  if (event.kind === "deleted") {
    record.messageIds = record.messageIds.filter((id) => id !== event.messageId);
    // The place of the answer goes with the last of its questions.
    if (record.messageIds.length === 0) record.attempts = 1;
  }
  await records.save(record);
  await change(history, event);
  await calls.restart(true);
  return true;
}

/** Begins a turn, or goes on with what an earlier attempt has made of it. */
async function proceed(
  deps: AnswersDeps,
  turn: RunningTurn,
  { events, messages, isGivenUp }: Batch,
  signal: AbortSignal,
): Promise<readonly InboundEvent[]> {
  const { history, log } = deps;
  const { record } = turn;
  // First stores the answers that could not be stored before, so that this turn sees them.
  await deps.unkept.replay();
  const earlier = await loadEarlierAttempt(deps, record.id, messages.length > 0);
  const { own, done } = splitBatch(events, messages, earlier?.messageIds);
  const isOver = earlier?.phase === "final";
  for (const event of done) if (isOver || event.kind === "deleted") await change(history, event);
  if (isOver) {
    await countEarlierEnd(deps, earlier);
    return done;
  }
  deps.waiting.clear(own);
  const asked = await withoutDeleted(history, own, log);
  Object.assign(record, earlier, { messageIds: asked.map(({ messageId }) => messageId) });
  // It may have been said before one of its questions was changed.
  const isChange = ({ kind }: InboundEvent) => kind === "edited" || kind === "deleted";
  const isOwn = (event: InboundEvent) =>
    "messageId" in event && earlier?.messageIds?.includes(event.messageId) !== false;
  if (done.some((event) => isChange(event) && isOwn(event))) forgetSaid(record);
  const notice = isGivenUp ? undefined : await deps.bringEarlier(asked, signal);
  if (notice !== undefined) turn.tell(notice);
  if (asked.some(({ isCut }) => isCut)) turn.tell(TOO_LONG);
  if (!(await storeQuestions(history, asked, log))) turn.missStore();
  for (const event of done) if (event.kind === "action" || event.kind === "command") turn.notice(event);
  await run(deps, turn, signal);
  return [...done, ...turn.taken()];
}

/** Attempts until one ends the turn: each edit of what is being answered begins another one in the same messages. */
async function run(deps: AnswersDeps, turn: RunningTurn, signal: AbortSignal): Promise<void> {
  const { history, ledger, attempt, log } = deps;
  const { record } = turn;
  let result: AttemptResult;
  do {
    const beginning = turn.begin();
    for (const event of beginning.changes) await change(history, event);
    if (record.messageIds.length === 0) return takeBack(deps, record);
    result = await attempt(record, beginning, signal);
    if (result === "forgotten") return removePosted(deps, record);
    // Another question has another answer, whatever people have read of this one.
    if (result === "superseded") {
      record.seen = 0;
      forgetSaid(record);
      // If this cannot be stored, the next attempt sees the calls made so far as if nothing had been changed.
      const restart = async () => (await ledger.open(record.id)).restart(true);
      await persist(restart, (err) => log.error({ err, turnId: record.id }, "the calls of a turn could not be kept"));
    }
  } while (turn.mustGoOn(result));
}

async function change(history: History, event: InboundEvent): Promise<void> {
  if (event.kind === "edited") await history.edit(event.messageId, event.text, event.attachments);
  if (event.kind === "deleted") await history.remove(event.messageId);
}

/** An attempt of which no record tells, as when the store was away: what it posted may be found again. */
const BEGUN_UNNOTED: Partial<TurnRecord> = { attempts: 1, isPosting: true };

/** Reads what an earlier attempt left of a turn. An unreachable store must not hold an answer back; a slow one is asked twice. */
async function loadEarlierAttempt(
  { records, log }: AnswersDeps,
  id: string,
  isAsked: boolean,
): Promise<Partial<TurnRecord> | undefined> {
  try {
    // Without it an answer would begin with less than people have read.
    const record = await records.load(id).catch(() => records.load(id));
    return record ?? (isTakenUp() ? BEGUN_UNNOTED : undefined);
  } catch (error) {
    // It tells how far the process came that had begun the answer: tried again once the store is back.
    if (!isAsked || isTakenUp()) throw error;
    log.error({ err: error, turnId: id }, "the record of a turn could not be read");
    return BEGUN_UNNOTED;
  }
}

/** Makes the question that lets an answer go on. The same press makes the same question. */
export function toContinuationEvent(event: ActionEvent, record: TurnRecord): MessageEvent {
  const { key, author, at } = event;
  const { conversationId, posted } = record;
  const inReplyTo = posted.at(-1);
  // It has messages of its own.
  const reply = toPressedReply(event, record, 0);
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
    // It goes on with that answer, not with what was said after it.
    ...(inReplyTo !== undefined && { inReplyTo }),
  };
}
