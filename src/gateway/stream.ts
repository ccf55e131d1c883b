import { StringDecoder } from "node:string_decoder";
import type { AnswerBody } from "./answer-body.ts";
import { createAnswerDecoder } from "./answer-decoder.ts";
import type { ChatCompletionChunk } from "./chunks.ts";
import { GatewayError } from "./errors.ts";
import { toConnectionError } from "./failures.ts";
import type { GatewayLimits } from "./limits.ts";
import type { SafeText } from "./safe-text.ts";
import type { StreamDecoder, Tally } from "./stream-decoder.ts";
import type { Watch } from "./watch.ts";

/** Reads one answer to a streaming request. */
export interface AnswerReader {
  readonly tally: Readonly<Tally>;
  /**
   * Chunks that came together; undefined at the end of an answer that is whole. Throws a GatewayError after
   * the last chunk of one that is not, and the signal's reason when `watch` ends. One call at a time.
   */
  read(): Promise<ChatCompletionChunk[] | undefined>;
  /** Gives the connection back when the answer was whole, and closes it otherwise. */
  leave(): void;
}

export interface AnswerReaderOptions {
  limits: GatewayLimits;
  safe: SafeText;
}

/** With this many chunks unread, the gateway is made to wait. */
const MAX_UNREAD_CHUNKS = 1_000;

/** Decodes as the bytes come, so that a chunk costs no promise of its own. */
export function createAnswerReader(
  body: AnswerBody,
  watch: Watch,
  { limits, safe }: AnswerReaderOptions,
): AnswerReader {
  const decoder = createAnswerDecoder(limits, safe);
  const { tally } = decoder;
  const utf8 = new StringDecoder("utf8");
  let unread: ChatCompletionChunk[] = [];
  let isOver = false;
  let broken: unknown;
  let reading: PromiseWithResolvers<ChatCompletionChunk[] | undefined> | undefined;

  /** Gives a waiting reader what there is: chunks, the end, or what is wrong with it. */
  function tell(): void {
    if (reading === undefined) return;
    const { resolve, reject } = reading;
    reading = undefined;
    watch.rest();
    if (unread.length === 0) {
      const gap = findGap(decoder, broken, watch.signal);
      return gap === undefined ? resolve(undefined) : reject(gap.error);
    }
    const batch = unread;
    unread = [];
    resolve(batch);
    // Last, because what waited comes before this returns.
    if (batch.length > MAX_UNREAD_CHUNKS) body.resume();
  }

  function settle(error?: unknown): void {
    isOver = true;
    broken ??= error;
    tell();
  }

  body.listen({
    onData(bytes) {
      if (isOver) return;
      const events = tally.events;
      const chunks = decoder.feed(utf8.write(bytes));
      unread = unread.length === 0 ? chunks : unread.concat(chunks);
      if (unread.length > MAX_UNREAD_CHUNKS) body.pause();
      if (decoder.isDone() || decoder.failure() !== undefined) settle();
      else if (chunks.length > 0) tell();
      // Only data events are a sign of life: comments are not.
      else if (reading !== undefined && tally.events > events) watch.expect(readPatience(tally, limits));
    },
    onEnd() {
      if (!isOver) unread = unread.concat(decoder.end());
      settle();
    },
    onError(error) {
      if (!isOver) settle(error);
    },
  });

  return {
    tally,
    read() {
      reading = Promise.withResolvers();
      const { promise } = reading;
      if (unread.length > 0 || isOver) tell();
      else watch.expect(readPatience(tally, limits));
      return promise;
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
