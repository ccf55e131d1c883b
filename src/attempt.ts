import type { Logger } from "pino";
import type { Adapter, Button, MessageEvent, ReplySink } from "./adapter.ts";
import type { Context, ReadContext } from "./context.ts";
import { describeEnding, type Ending } from "./endings.ts";
import type { Usage } from "./gateway/chunks.ts";
import type { Gateway, RetryNotice } from "./gateway/client.ts";
import type { GatewayError } from "./gateway/errors.ts";
import type { History } from "./history.ts";
import type { Metrics } from "./metrics.ts";
import type { Scheduler } from "./pacing/scheduler.ts";
import { type Cause, type Closing, createProgress, writeReply } from "./reply.ts";
import type { Tool } from "./tools/tool.ts";
import { runTurn, type TurnEvent } from "./turn.ts";
import type { TurnRecord, TurnRecords } from "./turn-record.ts";

/** A turn that was begun this often without an end is given up: something about it ends the process each time. */
const MAX_ATTEMPTS = 50;
const MAX_ROUNDS = 8;

/** `superseded`: the messages changed while they were answered, and the answer has to begin again. */
export type AttemptResult = "ended" | "superseded";

/**
 * Answers the messages of a record once: asks the model, writes the reply, keeps it in the history. `controller`
 * interrupts with the reasons `stopped` and `superseded`, `shutdown` is the queue's. `messages` are the record's
 * where they are at hand. Rejects when the reply could not be written to its end, or was cut by the shutdown before
 * anything of it was seen: then the turn is to be taken up again.
 */
export type Attempt = (
  record: TurnRecord,
  messages: readonly MessageEvent[],
  controller: AbortController,
  shutdown: AbortSignal,
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
  return async (record, messages, controller, shutdown) => {
    const signal = AbortSignal.any([controller.signal, shutdown]);
    const sink = deps.adapterOf(record.reply.platform).sink(record.reply);
    const progress = createProgress(sink);
    progress.show("thinking");
    record.attempts += 1;
    await deps.records.save(record);
    try {
      const context = await deps.readContext(record, messages, signal);
      const asked = context.messages.length;
      const acceptedAt = messages.at(-1)?.at ?? Date.now();
      const run = { deps, record, sink, context, signal, controller, show: progress.show, acceptedAt };
      const { text, ending } = await write(run);
      if (ending === undefined) return "superseded";
      await keep(deps, record, context.messages.slice(asked), ending);
      report(run, text, ending);
      return "ended";
    } finally {
      await progress.clear();
    }
  };
}

interface Run {
  deps: AttemptDeps;
  record: TurnRecord;
  sink: ReplySink;
  context: Context;
  signal: AbortSignal;
  controller: AbortController;
  show(progress: string): void;
  /** Unix milliseconds. */
  acceptedAt: number;
}

function secondsSince(unixMs: number): number {
  return Math.max(0, Date.now() - unixMs) / 1_000;
}

/** Writes the reply. `ending` is undefined when the answer was superseded and its messages are left to the next attempt. */
async function write(run: Run): Promise<{ text: string; ending: Ending | undefined }> {
  const { deps, record, sink, context, signal, controller } = run;
  const { metrics } = deps;
  let ending: Ending | undefined;
  const toClosing = (cause: Cause, text: string): Closing | undefined => {
    if ("error" in cause && signal.reason === "superseded") return undefined;
    if ("error" in cause && signal.reason === "shutdown" && record.posted.length === 0) throw cause.error;
    if ("error" in cause) logFailure(run, cause.error);
    ending = toEnding(run, cause, text);
    return { note: [...context.notices, ending.note].filter(Boolean).join("\n\n"), buttons: toButtons(ending, record) };
  };
  const text = await writeReply(observe(run), {
    sink,
    scheduler: deps.scheduler,
    turnId: record.id,
    posted: record.posted,
    onPosted: async () => {
      record.phase = "posted";
      await deps.records.save(record);
    },
    onCall: (kind, error) => {
      metrics.platformCall(record.reply.platform, kind);
      if (error?.kind === "rate-limited") metrics.rateLimited("platform");
      if (error !== undefined) deps.log.warn({ err: error, turnId: record.id, call: kind }, "a write was refused");
    },
    onRefused: () => controller.abort("refused"),
    onVisible: () => {
      metrics.firstVisible(secondsSince(run.acceptedAt));
      run.show("");
    },
    toClosing,
  });
  return { text, ending };
}

/** The events of the turn, with the time of the first text taken on the way. */
async function* observe(run: Run): AsyncGenerator<TurnEvent> {
  const { deps, record, context, signal, show } = run;
  if (record.attempts > MAX_ATTEMPTS) throw new Error("The turn was begun too often without reaching its end.");
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

function toEnding({ deps, signal }: Run, cause: Cause, text: string): Ending {
  const aborted = "error" in cause && signal.aborted;
  const ending = describeEnding(aborted ? { error: signal.reason } : cause, { model: deps.model, now: Date.now() });
  if (text.trim() !== "" || ending.note !== "") return ending;
  return { outcome: "failed", note: "_The model gave an empty answer. Press Retry to ask again._", retry: true };
}

function toButtons(ending: Ending, { id: turnId }: TurnRecord): Button[] {
  return ending.retry ? [{ action: "retry", turnId, label: "Retry" }] : [];
}

/** Keeps the answer in the history and ends the record. An answer without text leaves no entry, nor the one of an earlier try. */
async function keep(
  deps: AttemptDeps,
  record: TurnRecord,
  messages: Context["messages"],
  ending: Ending,
): Promise<void> {
  const { history, records, log } = deps;
  const { id, conversationId, author, reply, posted } = record;
  try {
    if (messages.length === 0) await history.remove(id);
    else {
      const askedBy = { platform: reply.platform, id: author.id };
      const entry = { id, at: Date.now(), askedBy, messages, partial: ending.outcome !== "complete" };
      await history.append(conversationId, entry, posted);
    }
  } catch (error) {
    log.error({ err: error, turnId: id }, "an answer could not be stored in the history");
  }
  record.phase = "final";
  record.attempts = 0;
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
