import type { AnswerBody } from "./answer-body.ts";
import { createAnswerDecoder } from "./answer-decoder.ts";
import type { AnswerReport } from "./answer-report.ts";
import type { ChatCompletionChunk } from "./chunks.ts";
import { GatewayError } from "./errors.ts";
import { toConnectionError } from "./failures.ts";
import type { GatewayLimits } from "./limits.ts";
import type { SafeText } from "./safe-text.ts";
import type { OnChunk, StreamDecoder, Tally } from "./stream-decoder.ts";
import { createUtf8Decoder } from "./utf8.ts";
import type { Watch } from "./watch.ts";

/** Reads one answer to a streaming request. */
export interface AnswerReader {
  readonly tally: Readonly<Tally>;
  /**
   * Resolves when the answer is whole and all its chunks are handed over. Rejects with a GatewayError when it ends
   * before, with the signal's reason when `watch` ends, and with whatever the taker of the chunks throws.
   */
  read(): Promise<void>;
  /** Gives the connection back when the answer was whole, and closes it otherwise. */
  leave(): void;
}

export interface AnswerReaderOptions {
  limits: GatewayLimits;
  safe: SafeText;
  report: AnswerReport;
}

interface Thrown {
  error: unknown;
}

/** Decodes as the bytes come and hands the chunks over at once, so that a chunk costs no promise. */
export function createAnswerReader(
  body: AnswerBody,
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

/** What keeps an answer that has ended from being whole. */
function findGap(decoder: StreamDecoder, broken: unknown, signal: AbortSignal): Thrown | undefined {
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
