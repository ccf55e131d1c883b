import { persist } from "../concurrency/retry.ts";
import type { ActionEvent, DeletedEvent, EditedEvent, InboundEvent, MessageEvent } from "../port/events.ts";
import { readEditionId, readTurnId } from "../port/ids.ts";
import type { Attempt } from "./attempt.ts";
import type { BringEarlier, Brought, Overhear } from "./context.ts";
import type { LateWrites } from "./late-writes.ts";
import { editionOf, readAnswer, removePosted, takeBack } from "./posted-answer.ts";
import { change, changeWaiting, isQuestionGone, splitBatch, storeQuestions, withoutDeleted } from "./questions.ts";
import { newRecord, type TurnRecord } from "./record.ts";
import type { TurnServices } from "./records.ts";
import { countEarlierEnd, forgetShownText, loadEarlierAttempt } from "./resume.ts";
import { canManage, NOT_YOURS, toPressedReply } from "./rights.ts";
import { type AttemptResult, createRunningTurn, type RunningTurn, type RunningTurns } from "./running.ts";
import { decideCalls } from "./tool-approval.ts";
import type { WaitingMarks } from "./waiting-marks.ts";

export interface Answers {
  /**
   * Answers a batch if `isWanted` resolves to true. Otherwise stores the batch as overheard. If people have deleted all
   * messages of the batch, removes the answer. Resolves to the finished events. Events that arrived after an earlier
   * attempt started are not finished, and the next call gets them. Rejects if the reply could not be written; the
   * caller must then retry.
   */
  answer(batch: Batch, isWanted: Promise<boolean>, signal: AbortSignal): Promise<readonly InboundEvent[]>;
  overhear: Overhear;
  /**
   * Writes a new answer into the messages of an earlier one, or continues an answer after a decision about its calls.
   */
  retry(event: ActionEvent, batch: Omit<Batch, "messages">, signal: AbortSignal): Promise<Retried>;
  /** Applies a change to a question whose answer waits for approval. Resolves to true if there was such an answer. */
  reconsider(event: EditedEvent | DeletedEvent, signal: AbortSignal): Promise<boolean>;
}

export interface Batch {
  events: readonly InboundEvent[];
  messages: readonly MessageEvent[];
  /** If true, the bot asks no model, and the answer only says that the bot gave up. */
  isGivenUp?: true;
}

interface Retried {
  done: readonly InboundEvent[];
  /** A sentence for the person who pressed the button. Present if the bot did nothing. */
  refusal?: string;
}

const TOO_LONG = "_Your message was too long, so I read only its beginning and its end. Send the rest as a file._";

const NOT_TAKEN =
  "I can no longer change this answer, because it's too old or I've lost access to it. Please ask again.";

interface AnswersDeps extends TurnServices {
  turns: Pick<RunningTurns, "whileRunning" | "find">;
  lateWrites: Pick<LateWrites, "replay">;
  attempt: Attempt;
  bringEarlier: BringEarlier;
  overhear: Overhear;
  waiting: Pick<WaitingMarks, "clear">;
}

export function createAnswers(deps: AnswersDeps): Answers {
  const { records } = deps;
  const { whileRunning, find } = deps.turns;

  async function askAgain(
    record: TurnRecord,
    { events, isGivenUp }: Omit<Batch, "messages">,
    signal: AbortSignal,
  ): Promise<Retried> {
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
      if (record === undefined) return refuse(events, "This answer is too old to retry. Please ask again.");
      await countEarlierEnd(deps, record);
      if (!canManage(event, record)) return refuse(events, NOT_YOURS);
      record.reply = toPressedReply(event, record, record.posted.length);
      const isRunning = find(record.id) !== undefined;
      const orphaned = await endOrphan(deps, record, events, isRunning);
      if (orphaned !== undefined) return orphaned;
      if (isRunning) return { done: events };
      const again = await prepareAgain(deps, event, record, signal);
      if (again !== "go on") return again === "done" ? { done: events } : refuse(events, again);
      return askAgain(record, batch, signal);
    },

    async reconsider(event, signal) {
      const record = await records.answerTo(event.messageId);
      if (record !== undefined) await countEarlierEnd(deps, record);
      if (record?.waits === undefined) return false;
      if (await changeWaiting(deps, record, event)) await askAgain(record, { events: [event] }, signal);
      return true;
    },
  };
}

/** If the question was deleted, ends the retry and resolves to its result. Otherwise resolves to undefined. */
async function endOrphan(
  deps: AnswersDeps,
  record: TurnRecord,
  events: readonly InboundEvent[],
  isRunning: boolean,
): Promise<Retried | undefined> {
  if (!(await isQuestionGone(deps.history, record))) return undefined;
  if (record.phase === "final" || isRunning) return refuse(events, "The question was deleted.");
  // An earlier attempt started to remove the answer but did not finish.
  await takeBack(deps, record);
  return { done: events };
}

/**
 * Returns the edition number of the next answer. A complete answer stays available as an earlier edition. An incomplete
 * answer is replaced.
 */
async function toNextEdition({ history }: AnswersDeps, record: TurnRecord): Promise<number> {
  const answer = await readAnswer(history, record);
  if (answer === undefined || answer.partial === true || answer.messages.length === 0) return record.edition;
  return editionOf(answer) + 1;
}

function refuse(done: readonly InboundEvent[], refusal: string): Retried {
  return { done, refusal };
}

/** Prepares a turn for another answer. Resolves to "go on", to "done" if an earlier press did this, or to a refusal. */
async function prepareAgain(
  deps: AnswersDeps,
  event: ActionEvent,
  record: TurnRecord,
  signal: AbortSignal,
): Promise<string> {
  const calls = await deps.ledger.open(record);
  if (event.action !== "retry" && event.action !== "regenerate") return decideCalls(deps, event, record, calls, signal);
  if (record.phase !== "final") return "go on";
  const { edition } = readEditionId(event.turnId);
  const isAnother = edition === undefined ? !record.canRetry : edition !== record.edition;
  if (isAnother) return "done";
  await calls.restart(false);
  record.edition = await toNextEdition(deps, record);
  return "go on";
}

async function proceed(
  deps: AnswersDeps,
  turn: RunningTurn,
  { events, messages, isGivenUp }: Batch,
  signal: AbortSignal,
): Promise<readonly InboundEvent[]> {
  const { history, log } = deps;
  const { record } = turn;
  // First moves late answers to the history, so that this turn's model sees them.
  await deps.lateWrites.replay();
  const [earlier, present] = await Promise.all([
    loadEarlierAttempt(deps, record.id, messages.length > 0),
    withoutDeleted(history, messages, log),
  ]);
  const { own, done } = splitBatch(events, messages, earlier?.messageIds);
  const isOver = earlier?.phase === "final";
  for (const event of done) if (isOver || event.kind === "deleted") await change(history, event);
  if (isOver) {
    await countEarlierEnd(deps, earlier);
    return done;
  }
  deps.waiting.clear(own);
  const asked = own.filter((message) => present.includes(message));
  Object.assign(record, earlier, { messageIds: asked.map(({ messageId }) => messageId) });
  // The stored text of an answer can be older than a change to one of the turn's questions.
  const isChange = ({ kind }: InboundEvent) => kind === "edited" || kind === "deleted";
  const isOwn = (event: InboundEvent) =>
    "messageId" in event && earlier?.messageIds?.includes(event.messageId) !== false;
  if (done.some((event) => isChange(event) && isOwn(event))) forgetShownText(record);
  const { notice, nothingUntil }: Brought = isGivenUp ? {} : await deps.bringEarlier(asked, signal);
  if (notice !== undefined) turn.tell(notice);
  if (asked.some(({ isCut }) => isCut)) turn.tell(TOO_LONG);
  for (const { scheduled } of asked) if (scheduled?.notice !== undefined) turn.tell(scheduled.notice);
  if (!(await storeQuestions(history, asked, log, nothingUntil))) turn.missStore();
  for (const event of done) if (event.kind === "action" || event.kind === "command") turn.notice(event);
  await run(deps, turn, signal);
  return [...done, ...turn.taken()];
}

/**
 * Repeats attempts until one of them ends the turn. After each edit to the turn's questions, another attempt writes
 * into the same messages.
 */
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
    // Forgets the text that people have read, because the answer to a changed question can be shorter.
    if (result === "superseded") {
      record.seen = 0;
      forgetShownText(record);
      // If this fails, the next attempt uses the results of tool calls that were made before the edit.
      const restart = async () => (await ledger.open(record)).restart(true);
      await persist(restart, (err) => log.error({ err, turnId: record.id }, "the calls of a turn could not be stored"));
    }
  } while (turn.mustGoOn(result));
}
