import type { Logger } from "pino";
import { cut, isCut } from "../concurrency/cut.ts";
import { waitAtMost } from "../concurrency/deadlines.ts";
import { mayBeTakenOver, withoutFence } from "../concurrency/fence.ts";
import { PATIENT_PAUSES_MS, persist } from "../concurrency/retry.ts";
import type { ChatMessage } from "../gateway/chunks.ts";
import type { Detour, Gateway } from "../gateway/client.ts";
import { GatewayError } from "../gateway/errors.ts";
import type { History } from "../history/history.ts";
import type { HistoryEntry } from "../history/record.ts";
import type { TurnListener, TurnWatch } from "../insight/turn-watch.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { Scheduler } from "../pacing/scheduler.ts";
import type { Access } from "../policy/access.ts";
import type { Models } from "../policy/models.ts";
import type { Adapter } from "../port/adapter.ts";
import type { SinkErrorKind } from "../port/errors.ts";
import type { ReplySink, Step } from "../port/sink.ts";
import type { Closing } from "../reply/drafts.ts";
import { type Cause, createProgress, type OnText, writeReply } from "../reply/reply.ts";
import { createSteps, describeRunning, rendersSteps, type Steps } from "../reply/steps.ts";
import type { AnswerOptions } from "../settings/answer-options.ts";
import type { Settings } from "../settings/settings.ts";
import { isStoreOutage } from "../store/outage.ts";
import { neutralize } from "../text/neutralize.ts";
import { quoteName } from "../text/quote-name.ts";
import { type Ledger, MAX_ROUNDS, openLedger, type TurnLedger } from "../tools/ledger.ts";
import type { Tool } from "../tools/tool.ts";
import { canContinue, toEndingButtons } from "./answer-buttons.ts";
import { type AnswerPictures, createAnswerPictures, type ShowPicture } from "./answer-pictures.ts";
import { appendQuestions, type Context, type ReadContext, storeQuestionsLate, toContinuations } from "./context.ts";
import { describeDetour, describeOtherModel } from "./detour.ts";
import { describeDropped, PICTURES_OF_TOOLS } from "./dropped.ts";
import { editionOf, formerOf, readAnswer, toAnswerText } from "./editions.ts";
import { describeEnding, type Ending, WAITS } from "./endings.ts";
import { toAnswerEntry } from "./entries.ts";
import { createJsonCode, toFields, toSystemPrompt } from "./json-code.ts";
import { type OutsideTools, readPrompt, toOffered } from "./outside-tools.ts";
import { NotPermittedError, type Permits, readPermits } from "./permits.ts";
import { createPieces, type Pieces } from "./pieces.ts";
import type { TurnRecord, TurnRecords } from "./record.ts";
import type { AttemptResult, Beginning } from "./running.ts";
import { forgetSaid, noteSaid, readBegun } from "./said.ts";
import {
  type CallTimes,
  createCallTimes,
  NOTHING_GIVEN,
  type Sight,
  toCalls,
  toNotices,
  toPersonaMark,
} from "./sight.ts";
import { createSpending, type Spending, type SpendingDeps } from "./spending.ts";
import { removeStrays } from "./take-back.ts";
import { createThinking, type Thinking } from "./thinking.ts";
import { describeUncertain, describeWaiting } from "./tool-approval.ts";
import { runTurn, type TurnDeps } from "./turn.ts";
import type { UnkeptAnswers } from "./unkept.ts";

const OWN_MODEL = "_This channel has chosen the model. `/model default` goes back to the usual one._";
const ONLY_THOUGHT = "_The model hit the length limit before it got to an answer. Press Retry to ask again._";

/** Longest that more text waits for its note, from which another process would continue. */
const SEEN_WAIT_MS = 500;

/**
 * Answers the messages of a record once: asks the model, writes the reply, keeps it in the history. The controller of
 * `beginning` interrupts with the reasons `stopped`, `given-up` and `superseded`; `signal` is the queue's, with
 * `shutdown`, `forgotten` and `lost`. Model and persona are the channel's when it begins. Rejects when the reply could
 * not be written to its end, was cut by the shutdown and is handed over, or is another process's: then the turn is to be
 * taken up again.
 */
export type Attempt = (record: TurnRecord, beginning: Beginning, signal: AbortSignal) => Promise<AttemptResult>;

export interface AttemptDeps extends Omit<SpendingDeps, "metrics"> {
  gateway: Gateway;
  tools: readonly Tool[];
  outside: OutsideTools;
  ledger: Ledger;
  readContext: ReadContext;
  pseudonym(platform: string, userId: string): string;
  /** The configured ones, where a channel has none of its own. */
  model: string;
  systemPrompt: string;
  /** Decides which model answers whom, and where. */
  models: Models;
  /** Messages of the channel that a question brings along, unless the channel has its own number. */
  contextMessages: number;
  settings: Pick<Settings, "read">;
  access: Pick<Access, "judge">;
  history: History;
  records: TurnRecords;
  unkept: Pick<UnkeptAnswers, "add" | "drop" | "settled">;
  scheduler: Scheduler;
  watch: Pick<TurnWatch, "begin">;
  showPicture: ShowPicture;
  adapterOf(platform: string): Adapter;
  /** Told, before people see it, that a turn has more to show than any attempt before. */
  onProgress(turnId: string): void;
  metrics: Metrics;
  log: Logger;
}

export function createAttempt(deps: AttemptDeps): Attempt {
  return async (record, beginning, queueSignal) => {
    const signal = AbortSignal.any([beginning.controller.signal, queueSignal]);
    const sink = deps.adapterOf(record.reply.platform).sink(record.reply);
    const progress = createProgress(sink, { action: "stop", turnId: record.id, label: "Stop" });
    const steps = createSteps();
    progress.show("thinking");
    // A turn that begins once more has not ended: cut off now, it is to be taken up again.
    const phase = record.posted.length > 0 ? "posted" : "received";
    Object.assign(record, { attempts: record.attempts + 1, isRefused: false, phase });
    const [own, permits, ledger] = await Promise.all([
      deps.settings.read(record.reply),
      readPermits(deps.access, record, beginning.pressedBy),
      openLedger(deps, record.id),
      deps.records.save(record),
    ]);
    const chosen = await deps.models.choose(own.model, record);
    const model = permits.chooseModel([chosen.model, deps.models.usual(record), deps.model]);
    const askedAt = beginning.messages.at(-1)?.at ?? Date.now();
    const story = deps.watch.begin({ ...record, turnId: record.id, askedAt, model });
    const pieces = createPieces(deps.records, record);
    const run: Run = {
      ...beginning,
      deps,
      record,
      sink,
      queueSignal,
      signal,
      askedAt,
      permits,
      model,
      options: own.options ?? {},
      systemPrompt: toSystemPrompt(own, deps.systemPrompt),
      persona: own.persona,
      serversOff: own.serversOff ?? [],
      before: record.edition > 1 ? await readAnswer(deps.history, record) : undefined,
      story,
      show: progress.show,
      steps,
      ledger,
      thinking: createThinking({ onTell: (words) => showBeside(run, words) }),
      callTimes: createCallTimes(Date.now),
      pieces,
      spending: createSpending(deps, record, { model, maxTokens: own.options?.maxTokens }),
      hasText: false,
      detour: undefined,
      dropped: new Set(),
      context: { messages: [], notices: [], files: [], oldestShownId: undefined, given: NOTHING_GIVEN },
      askedCount: 0,
      isInVain: false,
      pictures: createAnswerPictures(deps.showPicture, {
        ...beginning,
        record,
        begin: pieces.begin,
        answering: () => run.detour?.model ?? model,
      }),
    };
    const notice = model === chosen.model ? chosen.notice : describeOtherModel(chosen.model, model);
    if (notice !== undefined) run.notices = [...run.notices, notice];
    try {
      const { text, ending } = await write(run);
      const calls = callsOf(run, run.context.messages.slice(run.askedCount));
      const after = pieces.end();
      // Nothing more is stored of a person who is being erased.
      if (ending === undefined && isCut(signal, "forgotten")) return "forgotten";
      // Before the record ends: after that nobody would count it again.
      const hasAnswer = text !== "" || run.pictures.hasAny;
      if (ending !== undefined && ending.outcome !== "waiting" && hasAnswer) await run.spending.noteAnswer();
      if (ending === undefined) return "superseded";
      await report(run, text, ending, calls, await keep(run, ending, after));
      return "ended";
    } finally {
      story.leave(signal.reason);
      if (isCut(signal, "lost")) void withoutFence(() => removeStrays(deps, record));
      await Promise.all([progress.clear(), run.spending.settled()]);
    }
  };
}

/** Chosen or made when the attempt begins, and the same to its end. */
interface Fixed {
  readonly deps: AttemptDeps;
  readonly record: TurnRecord;
  readonly sink: ReplySink;
  readonly queueSignal: AbortSignal;
  /** Also aborts when people interrupt the attempt. */
  readonly signal: AbortSignal;
  /** The platform's time of the newest question, Unix milliseconds; for a turn without messages at hand, this attempt's. */
  readonly askedAt: number;
  readonly permits: Permits;
  readonly model: string;
  readonly options: AnswerOptions;
  readonly systemPrompt: string;
  /** The channel's own. */
  readonly persona: string | undefined;
  /** Servers of tools that the channel has switched off. */
  readonly serversOff: readonly string[];
  /** The answer that stands there, where another one is written in its place. */
  readonly before: HistoryEntry | undefined;
  readonly story: TurnListener;
  /** Shows beside the reply what is waited for; "" takes it away. */
  show(words: string): void;
  readonly steps: Steps;
  readonly ledger: TurnLedger;
  readonly thinking: Thinking;
  readonly callTimes: CallTimes;
  readonly spending: Spending;
  readonly pieces: Pieces;
  readonly pictures: AnswerPictures;
}

/** One attempt with all that has come of it so far. */
interface Run extends Beginning, Fixed {
  /** Some of the answer has come. */
  hasText: boolean;
  /** The model that answers in place of `model`. */
  detour: Detour | undefined;
  /** Names of the changes that its requests needed. */
  readonly dropped: Set<string>;
  /** Empty until it is read. The turn adds its own messages to those of it. */
  context: Context;
  /** The number of messages that the context had before. */
  askedCount: number;
  /** Nothing came of the asking: the answer from before stays. */
  isInVain: boolean;
}

/**
 * Writes the reply. `ending` is undefined when the answer was superseded and its messages are left to the next attempt.
 */
async function write(run: Run): Promise<{ text: string; ending: Ending | undefined }> {
  const { deps, record, story, sink, steps, signal, controller } = run;
  const { metrics } = deps;
  let ending: Ending | undefined;
  let refusal: Ending | undefined;
  let hasProgressed = false;
  const progress = () => {
    if (!hasProgressed) deps.onProgress(record.id);
    hasProgressed = true;
  };
  const postedBefore = record.posted.length;
  const onEnd = (cause: Cause, text: string): Closing | undefined => {
    if ("error" in cause && isCut(signal, "superseded", "forgotten")) return undefined;
    if ("error" in cause && (isHandedOver(run) || lacksQuestion(run, cause.error))) throw cause.error;
    if ("error" in cause) logFailure(run, cause.error);
    ending = toEnding(run, cause, text);
    if (ending.outcome === "complete") noteSaid(record, text, true, run.options);
    if (run.isInVain && run.before !== undefined) record.edition = editionOf(run.before);
    const detour = run.detour && describeDetour(run.detour, run.model);
    const tight = ending.outcome === "length" ? run.spending.tight() : undefined;
    const bounded = tight === undefined ? "" : `_It was kept short: ${tight} is nearly used up._`;
    const notes = [
      ...run.context.notices,
      detour,
      toDropped(run),
      ending.note,
      bounded,
      describeUncertain(run.ledger.uncertain()),
    ];
    const isPartial = ending.outcome !== "complete";
    return { note: notes.filter(Boolean).join("\n\n"), buttons: toEndingButtons(run, ending), isPartial };
  };
  const describeRefusal = (kind: SinkErrorKind): Ending => {
    const error = kind === "filtered" ? "filtered" : "refused";
    return describeEnding({ error }, { model: run.model, now: Date.now() });
  };
  const text = await writeReply((onText) => ask(run, story.listen(onText)), {
    sink,
    steps,
    scheduler: deps.scheduler,
    record,
    isResumed: record.attempts > 1,
    refusal(kind) {
      const described = describeRefusal(kind);
      return { note: described.note, buttons: toEndingButtons(run, described) };
    },
    makesWay: record.edition > 1 && record.attempts === 1,
    onRecord: async () => {
      if (record.posted.length > 0) record.phase = "posted";
      await deps.records.save(record);
      if (record.posted.length > postedBefore) progress();
    },
    // A slow store must not slow the reply down: then a crash may show a little less for a moment.
    onSeen: (said) => {
      progress();
      noteSaid(record, said, ending?.outcome === "complete", run.options);
      return waitAtMost(deps.records.note(record), SEEN_WAIT_MS);
    },
    onCall: (kind, error) => {
      metrics.platformCall(record.reply.platform, kind);
      if (error?.kind === "rate-limited") metrics.rateLimited("platform");
      if (error === undefined) return;
      story.writeFailed(kind, error.kind);
      deps.log.warn({ err: error, turnId: record.id, call: kind }, "a write was refused");
    },
    onShown: story.shown,
    describeWait: () =>
      describeRunning(steps.all) || run.thinking.describe() || "waiting for the model to begin its answer",
    onWait: (words) => showBeside(run, words),
    onRefused: (kind) => {
      refusal = describeRefusal(kind);
      // A text that is not taken has the refusal at its end.
      record.isRefused = kind !== "rejected" && kind !== "filtered";
      cut(controller, "refused");
    },
    onVisible: () => {
      metrics.firstVisible(secondsSince(run.askedAt));
      story.firstVisible();
      run.show("");
    },
    onEnd,
  });
  return { text, ending: refusal ?? ending };
}

/** Reads the context and runs the turn on it. Resolves as `runTurn` does. */
async function ask(run: Run, onText: OnText): Promise<string> {
  const { deps, record, messages, signal } = run;
  const { said } = record;
  let emitted = "";
  const code = createJsonCode(onText);
  const write = run.options.format === "json" ? code.write : onText;
  deps.metrics.streamOpened();
  try {
    // An edited question has passed no gate.
    const isAnother = run.changes.some(({ kind }) => kind === "edited");
    run.permits.check(...(isAnother ? (["chat"] as const) : []), `model:${run.model}`);
    const channelMessages = run.options.context ?? deps.contextMessages;
    const contextOptions = { systemPrompt: run.systemPrompt, channelMessages, showsFiles: run.permits.may("files") };
    const context = await deps.readContext(record, messages, contextOptions, signal);
    context.notices.unshift(...run.notices);
    run.context = context;
    run.askedCount = run.context.messages.length;
    const prompted = await readPrompt({ ...deps, ...run });
    if (typeof prompted === "string") {
      onText(prompted);
      return "stop";
    }
    // For this answer alone: the history keeps what the person wrote.
    run.context.messages.push(...prompted);
    run.askedCount = run.context.messages.length;
    const emit = (text: string) => {
      if (emitted === "") deps.metrics.firstToken(secondsSince(run.askedAt));
      if (emitted === "") run.story.firstToken();
      emitted += text;
      // Clears the progress line, which would otherwise stay beside the text.
      if (run.thinking.pause() && record.posted.length > 0) run.show("");
      run.hasText = true;
      if (run.options.thinking === "shown") onText(run.thinking.takeQuote(run.sink.foldsQuotes === true));
      write(text);
    };
    const finish = await runTurn(run.context.messages, toTurnDeps(run), emit, signal);
    code.end();
    // Part of what is shown, so that all of it can be read however long it is, and not of what is kept.
    if (finish === WAITS)
      onText(`\n\n${describeWaiting(run.ledger.waiting()?.calls ?? [], toOffered({ ...run.deps, ...run }))}`);
    return finish;
  } catch (error) {
    // Asked once more in vain, people keep what they have read; the next attempt or an erasure decides for itself.
    const isOthers = isCut(signal, "superseded", "forgotten");
    if (!isOthers && said !== undefined) repeatSaid(run, said, emitted, onText);
    else if (!isOthers && emitted === "") repeatWritten(run, onText);
    throw error;
  } finally {
    deps.metrics.streamClosed();
  }
}

/** True if another process continues these messages; otherwise the visible answer ends with a sentence. */
function isHandedOver({ record, signal }: Run): boolean {
  if (isCut(signal, "shutdown")) return record.posted.length === 0 || mayBeTakenOver();
  return isCut(signal, "lost");
}

/** True where the question is in the store alone, which is away: this is tried again once it is back. */
function lacksQuestion({ messages }: Run, error: unknown): boolean {
  return messages.length === 0 && isStoreOutage(error);
}

/** Ends with all that an earlier process has shown, where this one has not come as far. */
function repeatSaid({ context }: Run, said: string, emitted: string, onText: OnText): void {
  const rest = said.startsWith(emitted) ? said.slice(emitted.length) : "";
  if (rest.trim() === "") return;
  context.messages.push({ role: "assistant", content: rest.trimStart() });
  onText(rest);
}

function repeatWritten(run: Run, onText: OnText): void {
  const { context, before, record } = run;
  const { messages, written = before?.messages ?? [] } = context;
  const text = toAnswerText(written);
  if (text === "") return;
  messages.push(...written);
  run.isInVain = before !== undefined && editionOf(before) !== record.edition;
  onText(text);
}

function toTurnDeps(run: Run): TurnDeps {
  const { deps, record, model, mustAsk, context } = run;
  const { gateway, metrics, log } = deps;
  const said = readBegun(record, run.ledger);
  return {
    gateway,
    tools: toOffered({ ...run.deps, ...run }),
    ledger: run.ledger,
    isAllowed: (toolName) => deps.ledger.isAllowed(record.conversationId, toolName),
    model,
    fields: toFields(run.options),
    ...(said !== undefined && { said, isSaidWhole: record.isSaidWhole === true }),
    maxRounds: MAX_ROUNDS,
    mustAsk,
    context: {
      conversationId: record.conversationId,
      files: context.files,
      ...(context.oldestShownId !== undefined && { oldestShownId: context.oldestShownId }),
      turn: { author: record.author, reply: record.reply, mustAsk, nextPiece: run.pieces.next },
      onFailure: (tool, err) => log.warn({ err, tool, turnId: record.id }, "a tool failed"),
    },
    user: deps.pseudonym(record.reply.platform, record.author.id),
    // Steps of an earlier attempt may still be shown.
    onStep: (step) => noteStep(run, { ...step, id: `${record.attempts}.${step.id}` }),
    onReasoning: run.thinking.add,
    showPictures: run.pictures.show,
    onRetry: ({ waitMs, error }) => {
      run.thinking.restart();
      run.story.retry(waitMs, error.kind);
      if (error.kind === "rate-limited") metrics.rateLimited("gateway");
      run.show(`the model is not available; asking again in ${Math.max(1, Math.round(waitMs / 1_000))} s`);
    },
    reserve: run.spending.reserve,
    onAdapted(names, hasPicturesOfTools) {
      for (const name of names) run.dropped.add(name);
      if (hasPicturesOfTools && names.includes("pictures")) run.dropped.add(PICTURES_OF_TOOLS);
    },
    mayAsk: (other) => deps.models.isOffered(other, record) && run.permits.may(`model:${other}`),
    onDetour: (detour) => {
      run.thinking.restart();
      run.detour = detour;
      if (detour !== undefined)
        run.story.note(`Asked ${detour.isSecondGateway ? "the second gateway" : "another model"}`);
      if (detour !== undefined) metrics.detoured(detour.isSecondGateway ? "gateway" : "model");
      const other = detour?.isSecondGateway ? "the second AI service" : "another model";
      run.show(detour === undefined ? "asking the model once more" : `the model is not available; asking ${other}`);
    },
  };
}

function toDropped({ dropped, detour, model, options, context, askedCount }: Run): string {
  const messages = context.messages.slice(0, askedCount);
  return describeDropped(dropped, { model: detour?.model ?? model, options, messages });
}

/** Shows what is waited for, unless the message that stands for the answer tells that itself. */
function showBeside({ record, hasText, show }: Run, words: string): void {
  if (record.posted.length === 0 || hasText) show(words);
}

function noteStep({ story, steps, thinking, sink, record, show, callTimes }: Run, step: Step): void {
  thinking.pause();
  story.step(step.state);
  callTimes.note(step);
  steps.note(step);
  const words = describeRunning(steps.all);
  // A reply that stands already shows them itself.
  const isInReply = rendersSteps(sink) && record.posted.length > 0;
  if (words !== "" && !isInReply) show(words);
}

/** Others read the answer too, unless it stands where only its person does. */
function describeStopper({ record: { author, reply }, stoppedBy }: Run): string | undefined {
  const by = stoppedBy();
  // The dashboard presses the asker's button under a name of its own.
  const isOwn = by?.id === author.id && by.name === author.name;
  if (isOwn && (reply.isDirect === true || reply.visibleTo !== undefined)) return "you";
  return by && quoteName(by.name);
}

/** Text that nobody can see is no answer. */
function toEnding(run: Run, cause: Cause, text: string): Ending {
  const { deps, model, signal } = run;
  const aborted = "error" in cause && signal.aborted;
  const stoppedBy = describeStopper(run);
  const ending = describeEnding(aborted ? { error: signal.reason } : cause, { model, now: Date.now(), stoppedBy });
  // Asking again does not help: the model that a channel chose may be gone from the gateway since.
  const isEmpty = neutralize(text).trim() === "";
  const shown = run.pictures.toEnding(ending, isEmpty);
  if (shown !== ending) return shown;
  // There is nothing to go on with.
  if (ending.outcome === "length" && isEmpty) return { outcome: "failed", note: ONLY_THOUGHT, retry: true };
  const mayBeModel = ending.outcome === "failed" && !ending.retry && model !== deps.model;
  if (mayBeModel) return { ...ending, note: `${ending.note}\n\n${OWN_MODEL}` };
  if (!isEmpty || ending.note !== "") return ending;
  return { outcome: "failed", note: "_The model gave an empty answer. Press Retry to ask again._", retry: true };
}

/**
 * Keeps the answer, also an empty one, whose place Retry fills, and ends the record. Resolves to whether the end is
 * stored: if not, the question is taken up again.
 */
async function keep(run: Run, ending: Ending, after: string | undefined): Promise<boolean> {
  const { deps, record, context, askedCount, queueSignal } = run;
  const { history, records, unkept, log } = deps;
  const areStored = run.areStored || (await storeQuestionsLate(history, run.messages, log, queueSignal));
  const { id, conversationId, posted, edition } = record;
  const messages = context.messages.slice(askedCount);
  const waits = ending.outcome === "waiting";
  const isRefused = messages.length === 0 && !waits && (ending.outcome === "filtered" || !ending.retry);
  const partial = ending.outcome !== "complete";
  const former = formerOf(run.before, edition);
  const ends = [...(record.ends ?? []), ending.outcome];
  const written = toAnswerEntry(record, { messages, partial, isRefused, number: ends.length, former });
  const entry = run.isInVain ? (run.before ?? written) : written;
  forgetSaid(record);
  delete record.waits;
  const offers = { canRetry: ending.retry, canContinue: canContinue(ending), ...(waits && { waits }) } as const;
  const final = { phase: "final", attempts: 0, ends, ...offers } as const;
  // A process that ends has little time left.
  const pausesMs = isCut(queueSignal, "shutdown") ? undefined : PATIENT_PAUSES_MS;
  const store = async () => {
    // An answer is not kept without what it answers.
    if (!areStored) await appendQuestions(history, run.messages);
    await history.append(conversationId, entry, posted, after);
  };
  const isStored = await persist(
    store,
    (error) => {
      if (isStoreOutage(error) && after !== undefined) {
        const asked = areStored ? undefined : toContinuations(run.messages);
        unkept.add({
          entry,
          aliases: posted,
          after,
          record: { ...record, ...final },
          attempts: record.attempts,
          ...(asked && { asked }),
        });
      }
      log.error({ err: error, turnId: id }, "an answer could not be stored in the history");
    },
    pausesMs,
  );
  if (isStored) unkept.drop(id);
  // Without the store the work cannot be given back either; the next holder must know the answer.
  else if (mayBeTakenOver()) await unkept.settled(id, queueSignal);
  const sight = run.isInVain ? undefined : toSight(run, messages);
  Object.assign(record, final);
  // A turn whose end is not stored cannot be asked again: its buttons would answer that it is still being written.
  return records.save(record, sight, pausesMs);
}

function callsOf({ record, callTimes, ledger }: Run, messages: ChatMessage[]): Sight["calls"] {
  return toCalls(messages, record.attempts, callTimes, ledger.rounds);
}

function toSight(run: Run, messages: ChatMessage[]): Sight {
  const { context, model, detour, options, persona, spending } = run;
  const { used } = spending;
  return {
    v: 1,
    at: Date.now(),
    model,
    ...(detour && { detour }),
    options,
    ...context.given,
    ...(persona !== undefined && { persona: toPersonaMark(persona) }),
    calls: callsOf(run, messages),
    notices: toNotices(context.notices),
    tokens: { prompt: used.promptTokens, completion: used.completionTokens, estimated: used.estimatedTokens },
  };
}

function logFailure(run: Run, error: unknown): void {
  const { deps, record, signal } = run;
  if (error instanceof NotPermittedError) run.story.refused("not permitted");
  if (signal.aborted || error instanceof NotPermittedError) return;
  if (error instanceof GatewayError) {
    if (error.kind === "rate-limited") deps.metrics.rateLimited("gateway");
    run.story.refused(`gateway: ${error.kind}`);
  }
  deps.log.warn({ err: error, turnId: record.id }, "the model gave no whole answer");
}

async function report(run: Run, text: string, ending: Ending, calls: Sight["calls"], isKept: boolean): Promise<void> {
  const { deps, record, story, model, askedAt } = run;
  const { outcome } = ending;
  deps.metrics.turnEnded(outcome);
  const { id: turnId, conversationId, posted } = record;
  const fields = { turnId, conversationId, model, outcome, chars: text.length, messages: posted.length };
  deps.log.info({ ...fields, seconds: secondsSince(askedAt) }, "turn ended");
  if (!isKept) return;
  const number = record.ends?.length ?? 1;
  await story.end({ number, outcome, note: ending.note, messages: posted.length, used: run.spending.used, calls });
}

function secondsSince(unixMs: number): number {
  return Math.max(0, Date.now() - unixMs) / 1_000;
}
