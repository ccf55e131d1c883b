import type { ChatCompletionChunk } from "./chunks.ts";
import type { ReadSince } from "./watch.ts";

/** What a stream of chunks asks of whoever has them. */
export interface ChunkSource {
  /** The first chunk is wanted. Never called when the consumer leaves before that. */
  begin(): void;
  /** After `push` said that too much is unread: the consumer has read it all. */
  resume(): void;
  /** The consumer has left. What is pushed from then on is dropped. */
  leave(): void;
}

export interface ChunkStream {
  /** The consumer's end. */
  readonly chunks: AsyncGenerator<ChatCompletionChunk, void>;
  /** Since when the consumer has waited, as a time of `performance.now()`; undefined while it does not. */
  readonly readWaitingMs: ReadSince;
  /** False when so much is unread that the source should rest until `resume`. */
  push(chunks: readonly ChatCompletionChunk[]): boolean;
  /** Nothing more comes. The consumer gets what is unread, and then `failure`, if there is one, thrown. */
  end(failure?: Failure): void;
}

interface Failure {
  error: unknown;
}

/** With this many chunks unread, the gateway is made to wait. */
const MAX_UNREAD_CHUNKS = 1_000;

type Result = IteratorResult<ChatCompletionChunk, void>;
type Resolve = (result: Result | Promise<Result>) => void;

const OVER: Result = Object.freeze({ done: true, value: undefined });

/**
 * Hands chunks over as they are pushed. When `signal` aborts, its reason is thrown before anything unread.
 * Written by hand, because an `async function*` makes several promises for a chunk, and this one.
 */
export function createChunkStream(source: ChunkSource, signal: AbortSignal): ChunkStream {
  const unread: ChatCompletionChunk[] = [];
  let waiting: Promise<Result> | undefined;
  let answer: Resolve | undefined;
  let waitingMs = 0;
  let isFull = false;
  let hasBegun = false;
  let hasEnded = false;
  let isClosed = false;
  let failure: Failure | undefined;

  /** Made once: `Promise.withResolvers` would make an object more for each chunk. */
  const keepAnswer = (resolve: Resolve): void => {
    answer = resolve;
  };

  /** From here on the consumer gets nothing; until here, what went wrong. */
  function close(): Promise<Result> {
    const told = failure;
    failure = undefined;
    isClosed = true;
    unread.length = 0;
    return told === undefined ? Promise.resolve(OVER) : Promise.reject(told.error);
  }

  function readNext(): Promise<Result> {
    if (waiting !== undefined) return waiting.then(readNext, readNext);
    if (isClosed) return Promise.resolve(OVER);
    if (signal.aborted) {
      failure = { error: signal.reason };
      return close();
    }
    const chunk = unread.shift();
    if (chunk !== undefined) return Promise.resolve({ done: false, value: chunk });
    if (hasEnded) return close();
    const promise = new Promise<Result>(keepAnswer);
    waiting = promise;
    // Whole milliseconds are kept in place; a fraction would be an object of its own for each chunk.
    waitingMs = Math.trunc(performance.now());
    // Last, because the source may push before it returns.
    if (!hasBegun || isFull) ask();
    return promise;
  }

  function ask(): void {
    isFull = false;
    if (hasBegun) return source.resume();
    hasBegun = true;
    source.begin();
  }

  /** Takes the answer that the consumer waits for, so that nothing here keeps what it is given. */
  function takeAnswer(): Resolve | undefined {
    const taken = answer;
    answer = undefined;
    waiting = undefined;
    return taken;
  }

  function leave(): void {
    if (isClosed) return;
    failure = undefined;
    void close();
    takeAnswer()?.(OVER);
    if (hasBegun) source.leave();
  }

  const chunks: AsyncGenerator<ChatCompletionChunk, void> = {
    next: readNext,
    async return() {
      leave();
      return OVER;
    },
    async throw(error) {
      leave();
      throw error;
    },
    async [Symbol.asyncDispose]() {
      leave();
    },
    [Symbol.asyncIterator]: () => chunks,
  };

  return {
    chunks,
    readWaitingMs: () => (waiting === undefined ? undefined : waitingMs),
    push(pushed) {
      if (isClosed) return true;
      for (const chunk of pushed) {
        if (waiting !== undefined) takeAnswer()?.({ done: false, value: chunk });
        else if (unread.push(chunk) > MAX_UNREAD_CHUNKS) isFull = true;
      }
      return !isFull;
    },
    end(given) {
      if (hasEnded) return;
      hasEnded = true;
      failure = isClosed ? undefined : given;
      const taken = takeAnswer();
      if (taken !== undefined) taken(close());
    },
  };
}
