import type { AnswerBody } from "./answer-body.ts";
import { createAnswerDecoder } from "./answer-decoder.ts";
import type { AnswerReport } from "./answer-report.ts";
import type { ChunkStream } from "./chunk-stream.ts";
import type { ChatCompletionChunk } from "./chunks.ts";
import { GatewayError } from "./errors.ts";
import { toConnectionError } from "./failures.ts";
import type { GatewayLimits } from "./limits.ts";
import type { SafeText } from "./safe-text.ts";
import type { StreamDecoder, Tally } from "./stream-decoder.ts";
import { createUtf8Decoder } from "./utf8.ts";
import type { Watch } from "./watch.ts";

/** Reads one answer to a streaming request. */
export interface AnswerReader {
  readonly tally: Readonly<Tally>;
  /**
   * Resolves when the answer is whole and all its chunks are pushed. Rejects with a GatewayError when it ends
   * before, and with the signal's reason when `watch` ends.
   */
  read(): Promise<void>;
  /** The consumer has read what was too much for it. */
  resume(): void;
  /** Gives the connection back when the answer was whole, and closes it otherwise. */
  leave(): void;
}

export interface AnswerReaderOptions {
  limits: GatewayLimits;
  safe: SafeText;
  report: AnswerReport;
}

/** Decodes as the bytes come and pushes the chunks at once, so that a chunk costs no promise here. */
export function createAnswerReader(
  body: AnswerBody,
  watch: Watch,
  stream: ChunkStream,
  { limits, safe, report }: AnswerReaderOptions,
): AnswerReader {
  const decoder = createAnswerDecoder(limits, safe);
  const { tally } = decoder;
  const decodeUtf8 = createUtf8Decoder();
  const end = Promise.withResolvers<void>();
  let isOver = false;
  let patienceMs = 0;
  let broken: unknown;

  function settle(error?: unknown): void {
    if (isOver) return;
    isOver = true;
    broken = error;
    const gap = findGap(decoder, broken, watch.signal);
    if (gap === undefined) end.resolve();
    else end.reject(gap.error);
  }

  /** The gateway's silence counts from the last event, or from when the consumer began to wait for the next. */
  function expect(ms: number): void {
    patienceMs = ms;
    watch.expect(ms, stream.readWaitingMs);
  }

  function hand(chunks: readonly ChatCompletionChunk[]): void {
    report.chunk();
    if (!stream.push(chunks)) body.pause();
  }

  function onData(bytes: Buffer): void {
    if (isOver) return;
    const { events } = tally;
    const chunks = decoder.feed(decodeUtf8(bytes));
    if (chunks.length > 0) hand(chunks);
    if (decoder.isDone() || decoder.failure() !== undefined) return settle();
    const ms = readPatience(tally, limits);
    // Only data events are a sign of life, comments are not. After a chunk it is the consumer who is to move.
    if (ms !== patienceMs || (chunks.length === 0 && tally.events > events)) expect(ms);
  }

  return {
    tally,
    read() {
      expect(readPatience(tally, limits));
      body.listen({
        onData,
        onEnd() {
          const chunks = isOver ? [] : decoder.end();
          if (chunks.length > 0) hand(chunks);
          settle();
        },
        onError: settle,
      });
      return end.promise;
    },
    resume() {
      if (!isOver) body.resume();
    },
    leave() {
      if (isOver && broken === undefined && decoder.failure() === undefined) body.drain();
      else body.destroy();
    },
  };
}

function readPatience(tally: Readonly<Tally>, { firstTokenMs, idleMs, tailMs }: GatewayLimits): number {
  if (tally.finishReason !== undefined) return tailMs;
  return tally.answered ? idleMs : firstTokenMs;
}

/** What keeps an answer that has ended from being whole. */
function findGap(decoder: StreamDecoder, broken: unknown, signal: AbortSignal): { error: unknown } | undefined {
  // What is missing of a finished answer is its usage and `[DONE]`: no reason to call it partial.
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
