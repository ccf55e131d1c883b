import type { Logger } from "pino";
import type { Adapter, Button, MessageEvent, ReplySink } from "./adapter.ts";
import { persist } from "./bounds.ts";
import type { Context, ReadContext } from "./context.ts";
import { describeEnding, type Ending } from "./endings.ts";
import type { Usage } from "./gateway/chunks.ts";
import type { Gateway, RetryNotice } from "./gateway/client.ts";
import type { GatewayError } from "./gateway/errors.ts";
import type { History } from "./history.ts";
import type { Metrics } from "./metrics.ts";
import type { Scheduler } from "./pacing/scheduler.ts";
import { type Cause, createProgress, writeReply } from "./reply.ts";
import type { Closing } from "./reply-drafts.ts";
import { neutralize } from "./text/neutralize.ts";
import type { Tool } from "./tools/tool.ts";
import { runTurn, type TurnEvent } from "./turn.ts";
import type { TurnRecord, TurnRecords } from "./turn-record.ts";

/** A turn that was begun this often without an end is given up: something about it ends the process each time. */
const MAX_ATTEMPTS = 50;
const MAX_ROUNDS = 8;

/**
 * `superseded`: the messages changed while they were answered, and the answer has to begin again. `forgotten`: the
 * person who asked is being erased, so nothing was kept and what was posted is to go.
 */
export type AttemptResult = "ended" | "superseded" | "forgotten";

/**
 * Answers the messages of a record once: asks the model, writes the reply, keeps it in the history. `controller`
 * interrupts with the reasons `stopped` and `superseded`, `signal` is the queue's, with `shutdown` and `forgotten`.
 * `messages` are the record's where they are at hand. Rejects when the reply could not be written to its end, or was cut by the shutdown before
 * anything of it was seen: then the turn is to be taken up again.
 */
export type Attempt = (
  record: TurnRecord,
  messages: readonly MessageEvent[],
  controller: AbortController,
  signal: AbortSignal,
) => Promise<AttemptResult>;

export interface AttemptDeps {
  gateway: Gateway;
  model: string;
  tools: readonly Tool[];
  readContext: ReadContext;
  history: History;
  records: TurnRecords;
  scheduler: Scheduler;
  adapterOf(platform: string): Adapter;
  pseudonym(platform: string, userId: string): string;
  metrics: Metrics;
  log: Logger;
}

export function createAttempt(deps: AttemptDeps): Attempt {
  return async (record, messages, controller, queueSignal) => {
    const signal = AbortSignal.any([controller.signal, queueSignal]);
    const sink = deps.adapterOf(record.reply.platform).sink(record.reply);
    const progress = createProgress(sink);
    progress.show("thinking");
    record.attempts += 1;
    await deps.records.save({ ...record, isPosting: record.isPosting || record.posted.length === 0 });
    const acceptedAt = messages.at(-1)?.at ?? Date.now();
    const run: Run = {
      deps,
      record,
      messages,
      sink,
      signal,
      controller,
      show: progress.show,
      acceptedAt,
      context: NONE,
    };
    try {
      const { text, ending } = await write(run);
      if (ending === undefined) return signal.reason === "forgotten" ? "forgotten" : "superseded";
      await keep(run, ending);
      report(run, text, ending);
      return "ended";
    } finally {
      await progress.clear();
    }
  };
}

const NONE: Asked = { messages: [], notices: [], oldestShownId: undefined, count: 0 };

/** The context, to whose messages the turn adds its own, and how many of them were there before. */
interface Asked extends Context {
  count: number;
}

interface Run {
  deps: AttemptDeps;
  record: TurnRecord;
  messages: readonly MessageEvent[];
  sink: ReplySink;
  signal: AbortSignal;
  controller: AbortController;
  show(progress: string): void;
  /** Unix milliseconds. */
  acceptedAt: number;
  /** Set once it is read. */
  context: Asked;
}

function secondsSince(unixMs: number): number {
  return Math.max(0, Date.now() - unixMs) / 1_000;
}

/** Writes the reply. `ending` is undefined when the answer was superseded and its messages are left to the next attempt. */
async function write(run: Run): Promise<{ text: string; ending: Ending | undefined }> {
  const { deps, record, sink, signal, controller } = run;
  const { metrics } = deps;
  let ending: Ending | undefined;
  let isRefused = false;
  const toClosing = (cause: Cause, text: string): Closing | undefined => {
    if ("error" in cause && (signal.reason === "superseded" || signal.reason === "forgotten")) return undefined;
    if ("error" in cause && signal.reason === "shutdown" && record.posted.length === 0) throw cause.error;
    if ("error" in cause) logFailure(run, cause.error);
    ending = toEnding(run, cause, text);
    const note = [...run.context.notices, ending.note].filter(Boolean).join("\n\n");
    return { note, buttons: toButtons(ending, record) };
  };
  const refusal = describeEnding({ error: "refused" }, { model: deps.model, now: Date.now() });
  const text = await writeReply(observe(run), {
    sink,
    scheduler: deps.scheduler,
    record,
    isResumed: record.attempts > 1,
    refusal: { note: refusal.note, buttons: toButtons(refusal, record) },
    onRecord: async () => {
      if (record.posted.length > 0) record.phase = "posted";
      await deps.records.save(record);
    },
    onCall: (kind, error) => {
      metrics.platformCall(record.reply.platform, kind);
      if (error?.kind === "rate-limited") metrics.rateLimited("platform");
      if (error !== undefined) deps.log.warn({ err: error, turnId: record.id, call: kind }, "a write was refused");
    },
    onRefused: () => {
      isRefused = true;
      controller.abort("refused");
    },
    onVisible: () => {
      metrics.firstVisible(secondsSince(run.acceptedAt));
      run.show("");
    },
    toClosing,
  });
  return { text, ending: isRefused ? refusal : ending };
}

/** The events of the turn, beginning with what it asks; the time of the first text is taken on the way. */
async function* observe(run: Run): AsyncGenerator<TurnEvent> {
  const { deps, record, messages, signal, show } = run;
  if (record.attempts > MAX_ATTEMPTS) throw new Error("The turn was begun too often without reaching its end.");
  const context = await deps.readContext(record, messages, signal);
  run.context = { ...context, count: context.messages.length };
  let first = true;
  deps.metrics.streamOpened();
  try {
    const turn = {
      gateway: deps.gateway,
      tools: deps.tools,
      model: deps.model,
      maxRounds: MAX_ROUNDS,
      toolContext: {
        conversationId: record.conversationId,
        oldestShownId: context.oldestShownId,
        onFailure: (tool: string, err: unknown) => deps.log.warn({ err, tool, turnId: record.id }, "a tool failed"),
      },
      user: deps.pseudonym(record.reply.platform, record.author.id),
      onProgress: show,
      onRetry: ({ waitMs, error }: RetryNotice) => {
        if (error.kind === "rate-limited") deps.metrics.rateLimited("gateway");
        show(`the model is not available, asking again in ${Math.max(1, Math.round(waitMs / 1_000))} s`);
      },
      onUsage: (usage: Usage, estimated: boolean) => {
        deps.metrics.tokens("prompt", usage.prompt_tokens, estimated);
        deps.metrics.tokens("completion", usage.completion_tokens, estimated);
      },
    };
    for await (const event of runTurn(context.messages, turn, signal)) {
      if (first && event.type === "text") {
        deps.metrics.firstToken(secondsSince(run.acceptedAt));
        first = false;
      }
      yield event;
    }
  } finally {
    deps.metrics.streamClosed();
  }
}

/** What is not seen is no answer, whatever the model sent. */
function toEnding({ deps, signal }: Run, cause: Cause, text: string): Ending {
  const aborted = "error" in cause && signal.aborted;
  const ending = describeEnding(aborted ? { error: signal.reason } : cause, { model: deps.model, now: Date.now() });
  if (neutralize(text).trim() !== "" || ending.note !== "") return ending;
  return { outcome: "failed", note: "_The model gave an empty answer. Press Retry to ask again._", retry: true };
}

function toButtons(ending: Ending, { id: turnId }: TurnRecord): Button[] {
  if (canContinue(ending)) return [{ action: "continue", turnId, label: "Continue" }];
  return ending.retry ? [{ action: "retry", turnId, label: "Retry" }] : [];
}

function canContinue({ outcome, retry }: Ending): boolean {
  return outcome === "length" && retry;
}

/**
 * Keeps the answer in the history and ends the record. Also an answer without text has an entry: it holds the place
 * of the one that Retry may bring.
 */
async function keep({ deps, record, context }: Run, ending: Ending): Promise<void> {
  const { history, records, log } = deps;
  const { id, conversationId, author, reply, posted } = record;
  const askedBy = { platform: reply.platform, id: author.id };
  const messages = context.messages.slice(context.count);
  const entry = { id, at: Date.now(), askedBy, messages, partial: ending.outcome !== "complete" };
  await persist(
    () => history.append(conversationId, entry, posted),
    (error) => log.error({ err: error, turnId: id }, "an answer could not be stored in the history"),
  );
  Object.assign(record, { phase: "final", attempts: 0, canRetry: ending.retry, canContinue: canContinue(ending) });
  await records.save(record);
}

function logFailure({ deps, record, signal }: Run, error: unknown): void {
  if (signal.aborted) return;
  const kind = (error as GatewayError).kind;
  if (kind === "rate-limited") deps.metrics.rateLimited("gateway");
  deps.log.warn({ err: error, turnId: record.id }, "the model's answer broke off");
}

function report({ deps, record, acceptedAt }: Run, text: string, { outcome }: Ending): void {
  deps.metrics.turnEnded(outcome);
  const { id: turnId, conversationId, posted } = record;
  const fields = { turnId, conversationId, outcome, chars: text.length, messages: posted.length };
  deps.log.info({ ...fields, seconds: secondsSince(acceptedAt) }, "turn ended");
}
