import type { ByteShare } from "../concurrency/byte-budget.ts";
import { untilAborted } from "../concurrency/deadlines.ts";

export interface ReadLimit {
  maxBytes: number;
  /** Counts what is read; the caller that opened it releases it. */
  share: Pick<ByteShare, "hold">;
}

/** At first; most of what strangers send is shorter. */
const FIRST_BYTES = 4 * 1024;

/**
 * Reads a source to its end, and closes it in every case. `too-large`: more than `maxBytes`; `no-room`: more than the
 * share may hold. Rejects with the signal's reason at once, or with the source's failure.
 */
export async function readBounded(
  source: AsyncIterable<Uint8Array>,
  { maxBytes, share }: ReadLimit,
  signal: AbortSignal,
): Promise<Uint8Array | "too-large" | "no-room"> {
  const iterator = source[Symbol.asyncIterator]();
  // One growing buffer instead of a list of chunks: a source of single bytes would make that list cost a hundredfold.
  let buffer = new Uint8Array(Math.min(maxBytes, FIRST_BYTES));
  let sizeBytes = 0;
  try {
    for (;;) {
      signal.throwIfAborted();
      const { done, value } = await untilAborted(iterator.next(), signal);
      if (done === true) return buffer.slice(0, sizeBytes);
      const needed = sizeBytes + value.byteLength;
      if (needed > maxBytes) return "too-large";
      if (!share.hold(needed)) return "no-room";
      if (needed > buffer.byteLength)
        buffer = grow(buffer, Math.min(maxBytes, Math.max(needed, buffer.byteLength * 2)));
      buffer.set(value, sizeBytes);
      sizeBytes = needed;
    }
  } finally {
    void close(iterator);
  }
}

function grow(buffer: Uint8Array, sizeBytes: number): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(sizeBytes);
  larger.set(buffer);
  return larger;
}

/** Not awaited by the reader: a source stuck in its own wait would never answer. */
async function close(iterator: AsyncIterator<Uint8Array>): Promise<void> {
  try {
    await iterator.return?.();
  } catch {
    // The bytes are read or given up already; how the source ends changes nothing.
  }
}
