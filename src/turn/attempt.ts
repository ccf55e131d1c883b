import { abortWith, isAborted } from "../concurrency/abort.ts";
import { waitAtMost } from "../concurrency/deadlines.ts";
import { once } from "../concurrency/once.ts";
import { PATIENT_PAUSES_MS } from "../concurrency/retry.ts";
import type { ChatMessage } from "../gateway/chunks.ts";
import { GatewayError } from "../gateway/errors.ts";
import type { SinkErrorKind } from "../port/errors.ts";
import { canBeTakenOver, FencedError } from "../port/right.ts";
import type { Closing } from "../reply/drafts.ts";
import { type Cause, writeReply } from "../reply/reply.ts";
import { describeRunning } from "../reply/steps.ts";
import { isStoreOutage } from "../store/outage.ts";
import { neutralize } from "../text/neutralize.ts";
import { quoteName } from "../text/quote-name.ts";
import type { Source } from "../text/sources.ts";
import { toStorable } from "../tools/round.ts";
import {
  canContinue,
  describeDropped,
  describeEnding,
  describeFallback,
  type Ending,
  toEndingButtons,
} from "./endings.ts";
import { editionOf, formerOf, removeStrays, toAnswerEntry } from "./posted-answer.ts";
import { type AttemptDeps, type Prepared, prepare } from "./prepare.ts";
import { createProduced, type Produced, produce, showBeside } from "./produce.ts";
import { toContinuations } from "./questions.ts";
import type { Trace, TurnRecord } from "./record.ts";
import { forgetShownText, noteHandOver, noteShownText } from "./resume.ts";
import { NotPermittedError } from "./rights.ts";
import type { AttemptResult, Beginning } from "./running.ts";
import { describeUncertain } from "./tool-approval.ts";
import { toCalls, toNotices, toPersonaMark } from "./trace.ts";

/**
 * Answers the questions of a record once: prepares the attempt, streams the answer into the reply, and stores the
 * answer in the history. `beginning.controller` aborts the attempt with `stopped`, `given-up` or `superseded`. `signal`
 * is the signal of the queue, which aborts with `shutdown`, `forgotten` or `lost`. The attempt uses the channel's
 * settings from its start. Rejects if the reply could not be finished, or if another process continues it. The queue
 * then hands the turn out again.
 */
export type Attempt = (record: TurnRecord, beginning: Beginning, signal: AbortSignal) => Promise<AttemptResult>;

export function createAttempt(deps: AttemptDeps): Attempt {
  return async (record, beginning, queueSignal) => {
    const prepared = await prepare(deps, record, beginning, queueSignal);
    const { signal, spending } = prepared;
    let failure: unknown;
    try {
      const outcome = await stream(prepared);
      if (outcome === undefined) return isAborted(signal, "forgotten") ? "forgotten" : "superseded";
      // Counts the answer before the record is final: a process that finds a final record after a crash counts nothing.
      const { text, ending, hasPictures } = outcome;
      if (ending.outcome !== "waiting" && (text !== "" || hasPictures)) await spending.noteAnswer();
      await report(prepared, outcome, await keep(prepared, outcome));
      return "ended";
    } catch (error) {
      failure = error;
      throw error;
    } finally {
      await leave(prepared, failure instanceof FencedError);
    }
  };
}

async function report(prepared: Prepared, outcome: Outcome, isKept: boolean): Promise<void> {
  const { deps, record, model, display, spending } = prepared;
  const { text, calls } = outcome;
  const { outcome: how, note } = outcome.ending;
  const { id: turnId, conversationId, posted, ends = [how] } = record;
  const fields = { turnId, conversationId, model, outcome: how, chars: text.length, messages: posted.length };
  deps.metrics.turnEnded(how);
  deps.log.info({ ...fields, seconds: prepared.secondsSinceAsked() }, "turn ended");
  // If the record is not stored as final, another process resumes the turn and reports its end.
  if (!isKept) return;
  const { used } = spending;
  await display.story.end({ number: ends.length, outcome: how, note, messages: posted.length, used, calls });
}

/**
 * Cleans up after an attempt. `isFenced` is true if a write was rejected because another process has the turn, even if
 * the queue has not noticed that yet.
 */
async function leave({ deps, record, signal, display, spending }: Prepared, isFenced: boolean): Promise<void> {
  display.story.leave(signal.reason);
  if (isFenced || isAborted(signal, "lost", "shutdown"))
    await removeStrays({ ...deps, load: deps.records.load }, record);
  await Promise.all([display.progress.clear(), spending.settled()]);
}

const OWN_MODEL = "_This channel uses a model chosen here. `/model default` goes back to the usual one._";

const ONLY_THOUGHT = "_The model hit the length limit before it got to an answer. Press Retry to ask again._";

/** The ending of a scheduled run that has nothing to say. The note replaces an earlier answer. */
const SILENCE: Ending = { outcome: "complete", note: "_Nothing to report this time._", retry: false };

/** How long a call waits until its text is in the record. A process that takes over continues from the record. */
const SEEN_WAIT_MS = 500;

interface Outcome extends Pick<Produced, "context" | "fallback" | "isInVain"> {
  text: string;
  ending: Ending;
  hasPictures: boolean;
  /** The messages of the model and the tools, in the form in which the history stores them. */
  messages: ChatMessage[];
  calls: Trace["calls"];
  sources: Source[];
  /** The id of the history entry that the answer follows. */
  after: string | undefined;
}

/**
 * Writes the reply while the model is answering. If people changed the questions or the asker is being erased, resolves
 * to undefined and leaves the messages as they are.
 */
async function stream(prepared: Prepared): Promise<Outcome | undefined> {
  const { deps, record, beginning, before, model, options, display, ledger } = prepared;
  const { metrics, log, records, queue } = deps;
  const { sink, steps, story } = display;
  const produced = createProduced(prepared);
  let ending: Ending | undefined;
  let refusal: Ending | undefined;
  const noteProgress = once<void>(() => queue.progressed(record.id));
  const postedBefore = record.posted.length;
  const describeRefusal = (kind: SinkErrorKind): Ending => {
    const error = kind === "filtered" ? "filtered" : "refused";
    return describeEnding({ error }, { model, now: Date.now() });
  };
  const text = await writeReply((onText) => produce(prepared, produced, story.listen(onText)), {
    sink,
    right: deps.right,
    steps,
    scheduler: deps.scheduler,
    record,
    isResumed: record.attempts > 1,
    sources: produced.sources.all,
    refusal(kind) {
      const described = describeRefusal(kind);
      return { note: described.note, buttons: toEndingButtons({ record, sink, before, ledger }, described) };
    },
    makesWay: record.edition > 1 && record.attempts === 1,
    onRecord: async () => {
      if (record.posted.length > 0) record.phase = "posted";
      await records.save(record);
      if (record.posted.length > postedBefore) noteProgress();
    },
    // A slow store must not slow the reply down. If the process dies before the text is stored, people briefly see
    // less.
    onSeen: (shownText) => {
      noteProgress();
      const shown = { text: shownText, cited: produced.sources.cited() };
      noteShownText(record, shown, ending?.outcome === "complete", options);
      return waitAtMost(records.noteShownText(record), SEEN_WAIT_MS);
    },
    onCall: (kind, error) => {
      metrics.platformCall(record.reply.platform, kind);
      if (error?.kind === "rate-limited") metrics.rateLimited("platform");
      if (error === undefined) return;
      story.writeFailed(kind, error.kind);
      log.warn({ err: error, turnId: record.id, call: kind }, "a write was refused");
    },
    onShown: story.shown,
    // A scheduled run does not say what it waits for: no person is waiting, and the run may have nothing to say.
    ...(record.scheduled === undefined && {
      describeWait: () =>
        describeRunning(steps.all) || produced.thinking.describe() || "waiting for the model to start its answer",
    }),
    onWait: (words) => showBeside(prepared, produced, words),
    onRefused: (kind) => {
      refusal = describeRefusal(kind);
      // After `rejected` and `filtered`, the reply itself ends with the refusal, so people see why it ended.
      record.isRefused = kind !== "rejected" && kind !== "filtered";
      abortWith(beginning.controller, "refused");
    },
    onVisible: () => {
      metrics.firstVisible(prepared.secondsSinceAsked());
      story.firstVisible();
      display.progress.show("");
    },
    onEnd(cause, text) {
      ending = conclude(prepared, produced, cause, text);
      if (ending === SILENCE && record.posted.length === 0) return undefined;
      return ending && toClosing(prepared, produced, ending);
    },
  });
  const after = prepared.pieces.end();
  const last = refusal ?? ending;
  return last && toOutcome(prepared, produced, { text, ending: last, after });
}

function toOutcome(
  { deps, record, ledger }: Prepared,
  { context, askedCount, fallback, isInVain, callTimes, pictures, sources }: Produced,
  end: Pick<Outcome, "text" | "ending" | "after">,
): Outcome {
  const messages = toStorable(context.messages.slice(askedCount), deps.tools);
  const calls = toCalls(messages, record, callTimes, ledger.rounds);
  return { ...end, messages, sources: sources.all(), calls, hasPictures: pictures.hasAny, context, fallback, isInVain };
}

/**
 * Decides how the attempt ends when no more text follows. Returns undefined if the next attempt or an erasure will
 * change the messages. Throws `cause.error` if another process or a later attempt will continue the answer.
 */
function conclude(prepared: Prepared, produced: Produced, cause: Cause, text: string): Ending | undefined {
  const { deps, record, before, options, signal } = prepared;
  const shown = { text, cited: produced.sources.cited() };
  if ("error" in cause) {
    const { error } = cause;
    if (isAborted(signal, "superseded", "forgotten")) return undefined;
    if (isHandedOver(prepared) || lacksQuestion(prepared, error)) {
      if (noteHandOver(record, shown, signal, options)) void deps.records.noteShownText(record);
      throw error;
    }
    logFailure(prepared, error);
  }
  const ending = toEnding(prepared, produced, cause, text);
  if (ending.outcome === "complete") noteShownText(record, shown, true, options);
  if (produced.isInVain && before !== undefined) record.edition = editionOf(before);
  return ending;
}

/**
 * True if another process will continue the reply. Otherwise this process must end the visible answer with a sentence.
 */
function isHandedOver({ deps, record, signal }: Prepared): boolean {
  if (isAborted(signal, "shutdown")) return record.posted.length === 0 || canBeTakenOver(deps.right);
  return isAborted(signal, "lost");
}

/** True if only the store has the question and the store is unavailable. The queue then retries the turn. */
function lacksQuestion({ beginning }: Prepared, error: unknown): boolean {
  return beginning.messages.length === 0 && isStoreOutage(error);
}

function logFailure({ deps, record, signal, display }: Prepared, error: unknown): void {
  if (error instanceof NotPermittedError) display.story.refused("not permitted");
  if (signal.aborted || error instanceof NotPermittedError) return;
  if (error instanceof GatewayError) {
    if (error.kind === "rate-limited") deps.metrics.rateLimited("gateway");
    display.story.refused(`gateway: ${error.kind}`);
  }
  deps.log.warn({ err: error, turnId: record.id }, "the model gave no complete answer");
}

/** An answer without visible text counts as failed, unless it has pictures. */
function toEnding(prepared: Prepared, { pictures, isSilent }: Produced, cause: Cause, text: string): Ending {
  const { deps, model, signal } = prepared;
  const aborted = "error" in cause && signal.aborted;
  const stoppedBy = describeStopper(prepared);
  const ending = describeEnding(aborted ? { error: signal.reason } : cause, { model, now: Date.now(), stoppedBy });
  const isEmpty = neutralize(text).trim() === "";
  const shown = pictures.toEnding(ending, isEmpty);
  if (shown !== ending) return shown;
  if (isSilent && ending.outcome === "complete") return SILENCE;
  if (ending.outcome === "length" && isEmpty) return { outcome: "failed", note: ONLY_THOUGHT, retry: true };
  // The gateway may no longer have the model that people chose for this channel. A retry does not help then.
  const mayBeModel = ending.outcome === "failed" && !ending.retry && model !== deps.model;
  if (mayBeModel) return { ...ending, note: `${ending.note}\n\n${OWN_MODEL}` };
  if (!isEmpty || ending.note !== "") return ending;
  return { outcome: "failed", note: "_The model gave an empty answer. Press Retry to ask again._", retry: true };
}

/** The name of the person who stopped the answer. "you" if only that person reads the answer. */
function describeStopper({ record: { author, reply }, beginning }: Prepared): string | undefined {
  const by = beginning.stoppedBy();
  // A Stop from the dashboard has the asker's id, but the dashboard's name.
  const isOwn = by?.id === author.id && by.name === author.name;
  if (isOwn && (reply.isDirect === true || reply.visibleTo !== undefined)) return "you";
  return by && quoteName(by.name);
}

function toClosing(
  prepared: Prepared,
  { context, askedCount, fallback, dropped, sources }: Produced,
  ending: Ending,
): Closing {
  const { model, options, ledger, spending, display } = prepared;
  const asked = { model: fallback?.model ?? model, options, messages: context.messages.slice(0, askedCount) };
  const tight = ending.outcome === "length" ? spending.tight() : undefined;
  const notes = [
    ...context.notices,
    fallback && describeFallback(fallback, model),
    describeDropped(dropped, asked),
    ending.note,
    tight && `_I kept this short: ${tight} is nearly used up._`,
    describeUncertain(ledger.uncertain()),
  ];
  return {
    note: notes.filter(Boolean).join("\n\n"),
    buttons: toEndingButtons({ ...prepared, sink: display.sink }, ending),
    isPartial: ending.outcome !== "complete",
    // An answer that waits for approval continues later, and lists its sources only at its end.
    sources: ending.outcome === "waiting" ? [] : sources.all(),
  };
}

/**
 * Stores the answer in the history, then stores the record as final. Stores an empty answer too, because Retry replaces
 * it. Resolves to true if the record is stored.
 */
async function keep(prepared: Prepared, outcome: Outcome): Promise<boolean> {
  const { deps, record, beginning, before, queueSignal } = prepared;
  const { ending, messages, sources, after } = outcome;
  const asked = beginning.areStored ? [] : toContinuations(beginning.messages);
  const waits = ending.outcome === "waiting";
  const isRefused = messages.length === 0 && !waits && (ending.outcome === "filtered" || !ending.retry);
  const partial = ending.outcome !== "complete";
  const former = formerOf(before, record.edition);
  const ends = [...(record.ends ?? []), ending.outcome];
  const written = toAnswerEntry(record, { messages, sources, partial, isRefused, number: ends.length, former });
  const entry = outcome.isInVain ? (before ?? written) : written;
  forgetShownText(record);
  delete record.waits;
  const offers = { canRetry: ending.retry, canContinue: canContinue(ending), ...(waits && { waits }) } as const;
  const given = outcome.isInVain ? {} : { trace: toTrace(prepared, outcome) };
  const final = { phase: "final", attempts: 0, ends, ...offers, ...given } as const;
  const { attempts, posted: aliases } = record;
  await deps.lateWrites.store(
    deps,
    { entry, aliases, after, asked, record: { ...record, ...final }, attempts },
    queueSignal,
  );
  Object.assign(record, final);
  // A process that is shutting down has no time for long pauses between retries.
  const pausesMs = isAborted(queueSignal, "shutdown") ? undefined : PATIENT_PAUSES_MS;
  // Until the record is stored as final, a press on a button only shows that the bot is still writing.
  return deps.records.save(record, pausesMs);
}

function toTrace({ model, options, channel, spending }: Prepared, { context, fallback, calls }: Outcome): Trace {
  const { used } = spending;
  return {
    v: 1,
    at: Date.now(),
    model,
    ...(fallback && { fallback }),
    options,
    ...context.given,
    ...(channel.persona !== undefined && { persona: toPersonaMark(channel.persona) }),
    calls,
    notices: toNotices(context.notices),
    tokens: { prompt: used.promptTokens, completion: used.completionTokens, estimated: used.estimatedTokens },
  };
}
