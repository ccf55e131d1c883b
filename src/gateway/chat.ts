import type { Logger } from "pino";
import { isName } from "../log/fields.ts";
import type { ResponseBody } from "./body.ts";
import type { ChatCompletionChunk } from "./chunks.ts";
import { GatewayError } from "./errors.ts";
import { type ExtraBody, type ExtraFields, fieldsFor } from "./extra-body.ts";
import { toConnectionError } from "./failures.ts";
import type { GatewayLimits } from "./limits.ts";
import type { Attempts, CallDeps, CallOptions } from "./retry.ts";
import type { SafeText } from "./safe-text.ts";
import {
  createAnswerDecoder,
  createUtf8Decoder,
  type OnChunk,
  type StreamDecoder,
  type Tally,
} from "./stream-decoder.ts";
import type { GatewayCall } from "./transport.ts";
import { type ChatRequest, toChatJson } from "./validate.ts";
import { createWatch, type Watch } from "./watch.ts";

type StreamChat = (request: ChatRequest, signal: AbortSignal, onChunk: OnChunk, options: CallOptions) => Promise<void>;

export function createStreamChat(deps: CallDeps, extraBody: ExtraBody): StreamChat {
  return async (request, signal, onChunk, options) => {
    const call = { ...toCall(request, fieldsFor(extraBody, request.model)), beforeSend: options.beforeSend };
    const attempts = deps.retry(request.model, options, deps.limits.firstTokenTotalMs);
    for (;;) {
      await attempts.begin(signal);
      const failure = await attempt(deps, call, attempts, onChunk, signal);
      if (failure === undefined) return;
      if (failure.answered) throw failure.error;
      await attempts.recover(failure.error, signal);
    }
  };
}

interface Failure {
  error: unknown;
  /** Text or a tool call has come: the answer cannot be begun again. */
  answered: boolean;
}

/** Resolves to what went wrong, or to undefined when the answer is whole and all its chunks were handed over. */
async function attempt(
  { transport, limits: usual, safe, log }: CallDeps,
  call: GatewayCall,
  attempts: Attempts,
  onChunk: OnChunk,
  signal: AbortSignal,
): Promise<Failure | undefined> {
  const watch = createWatch(signal, attempts.remainingMs());
  const report = createAnswerReport(log, call.model ?? "", safe);
  const firstTokenMs = Math.max(1, Math.min(usual.firstTokenMs, attempts.remainingSilenceMs()));
  const limits = { ...usual, firstTokenMs };
  let reader: AnswerReader | undefined;
  let hasBegun = false;
  const handOver = (chunk: ChatCompletionChunk) => {
    if (!hasBegun) attempts.succeed();
    hasBegun = true;
    onChunk(chunk);
  };
  try {
    watch.expect(limits.firstTokenMs);
    reader = createAnswerReader(await transport.send(call, watch), watch, handOver, { limits, safe, report });
    await reader.read();
    signal.throwIfAborted();
    report.complete(reader.tally);
    return undefined;
  } catch (error) {
    if (reader !== undefined) report.broken(reader.tally, error);
    return { error, answered: reader?.tally.answered === true };
  } finally {
    reader?.leave();
    watch.end();
  }
}

function toCall(request: ChatRequest, extra: ExtraFields): GatewayCall {
  const { model } = request;
  return { method: "POST", path: "/v1/chat/completions", json: toChatJson(request, extra), model, streaming: true };
}

/** Reads one answer to a streaming request. */
interface AnswerReader {
  readonly tally: Readonly<Tally>;
  /** Resolves when all chunks are taken. Rejects with a GatewayError, the watch's reason or the taker's error. */
  read(): Promise<void>;
  /** Gives the connection back when the answer was whole, and closes it otherwise. */
  leave(): void;
}

interface AnswerReaderOptions {
  limits: GatewayLimits;
  safe: SafeText;
  report: AnswerReport;
}

interface Thrown {
  error: unknown;
}

/** Decodes as the bytes come and hands the chunks over at once, so that a chunk costs no promise. */
function createAnswerReader(
  body: ResponseBody,
  watch: Watch,
  onChunk: OnChunk,
  { limits, safe, report }: AnswerReaderOptions,
): AnswerReader {
  const decoder = createAnswerDecoder(limits, safe, hand);
  const { tally } = decoder;
  const decodeUtf8 = createUtf8Decoder();
  const end = Promise.withResolvers<void>();
  let hasBegun = false;
  let isOver = false;
  let isClean = false;
  let patienceMs = 0;

  function settle(broken?: unknown, thrown?: Thrown): void {
    if (isOver) return;
    isOver = true;
    const gap = thrown ?? findGap(decoder, broken, watch.signal);
    isClean = gap === undefined && broken === undefined && decoder.failure() === undefined && !watch.signal.aborted;
    if (gap === undefined) end.resolve();
    else end.reject(gap.error);
  }

  /** The rest of what was read together is dropped once the taker has left. */
  function hand(chunk: ChatCompletionChunk): void {
    if (isOver) return;
    if (!hasBegun) report.firstChunk();
    hasBegun = true;
    onChunk(chunk);
  }

  function expect(ms: number): void {
    patienceMs = ms;
    watch.expect(ms, countSigns);
  }

  function countSigns(): number {
    return tally.signs;
  }

  function onData(bytes: Buffer): void {
    if (isOver) return;
    try {
      decoder.feed(decodeUtf8(bytes));
    } catch (error) {
      return settle(undefined, { error });
    }
    if (decoder.isDone() || decoder.failure() !== undefined) return settle();
    const ms = readPatience(tally, limits);
    if (ms !== patienceMs) expect(ms);
  }

  function onEnd(): void {
    try {
      if (!isOver) decoder.end();
    } catch (error) {
      return settle(undefined, { error });
    }
    settle();
  }

  return {
    tally,
    read() {
      expect(readPatience(tally, limits));
      // At once, because more may have been read together with what its taker left at.
      watch.signal.addEventListener("abort", () => settle(), { once: true });
      body.listen({ onData, onEnd, onError: settle });
      return end.promise;
    },
    leave() {
      if (isClean) body.drain();
      else body.destroy();
    },
  };
}

function readPatience(tally: Readonly<Tally>, { firstTokenMs, idleMs, tailMs }: GatewayLimits): number {
  if (tally.finishReason !== undefined) return tailMs;
  return tally.answered ? idleMs : firstTokenMs;
}

/** Finds the reason why an answer that has ended is not whole. */
function findGap(decoder: StreamDecoder, broken: unknown, signal: AbortSignal): Thrown | undefined {
  // A finished answer lacks nothing but its usage and `[DONE]`: no reason to call it partial.
  if (decoder.tally.finishReason !== undefined) return undefined;
  if (signal.aborted) return { error: signal.reason };
  const failure = decoder.failure();
  if (failure !== undefined) return { error: failure };
  if (broken !== undefined) return { error: toConnectionError("interrupted", broken) };
  if (!decoder.tally.opened) {
    return { error: new GatewayError("malformed", "The gateway's answer is empty: it has no choice in it.") };
  }
  if (decoder.isDone()) return undefined;
  return { error: new GatewayError("interrupted", "The gateway's answer ended before it was complete.") };
}

/** Logs one answer: the model that gave it, how fast it came and how long it is; never a word of it. */
interface AnswerReport {
  firstChunk(): void;
  complete(tally: Readonly<Tally>): void;
  /** The answer ended before it was whole. */
  broken(tally: Readonly<Tally>, failure: unknown): void;
}

function createAnswerReport(log: Logger, requestedModel: string, safe: SafeText): AnswerReport {
  const startedMs = performance.now();
  let firstChunkMs: number | undefined;

  const sinceStart = (): number => Math.round(performance.now() - startedMs);

  /** Gateways may send a sentence where a name belongs. */
  function toName(text: string): string {
    const name = safe.name(text);
    return name === "" || isName(name) ? name : "[not a name]";
  }

  function describe(tally: Readonly<Tally>): Record<string, unknown> {
    return {
      id: toName(tally.id),
      model: toName(tally.model),
      requestedModel,
      firstChunkMs,
      totalMs: sinceStart(),
      chars: tally.chars,
      reasoningChars: tally.reasoningChars > 0 ? tally.reasoningChars : undefined,
      finishReason: tally.finishReason === undefined ? undefined : toName(tally.finishReason),
      usage: tally.usage,
      // Only when there are any: a broken event is worth looking for.
      droppedEvents: tally.malformed > 0 ? tally.malformed : undefined,
    };
  }

  return {
    firstChunk() {
      firstChunkMs = sinceStart();
    },
    complete(tally) {
      log.info(describe(tally), "answer complete");
    },
    broken(tally, failure) {
      const kind = failure instanceof GatewayError ? failure.kind : "left";
      log.info({ ...describe(tally), kind }, "answer broke off");
    },
  };
}
