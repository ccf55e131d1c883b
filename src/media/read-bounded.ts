import { untilAborted } from "../concurrency/deadlines.ts";

/** Both ends of what is held: the most there may ever be, and who is asked before there is more than there was. */
export interface ReadLimit {
  maxBytes: number;
  mayHold(sizeBytes: number): boolean;
}

/** At first; most of what strangers send is shorter. */
const FIRST_BYTES = 4 * 1024;

/**
 * Reads a source to its end. Resolves to undefined as soon as there are more than `maxBytes`, whatever size was
 * announced, or than may be held. Rejects with the signal's reason when it aborts, even if the source ignores that, and with the
 * source's own failure. The source is closed in every case.
 */
export async function readBounded(
  source: AsyncIterable<Uint8Array>,
  limit: number | ReadLimit,
  signal: AbortSignal,
): Promise<Uint8Array | undefined> {
  const { maxBytes, mayHold } = typeof limit === "number" ? toLimit(limit) : limit;
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
      if (!mayHold(needed)) return undefined;
      if (needed > buffer.byteLength)
        buffer = grow(buffer, Math.min(maxBytes, Math.max(needed, buffer.byteLength * 2)));
      buffer.set(value, sizeBytes);
      sizeBytes = needed;
    }
  } finally {
    void close(iterator);
  }
}

function toLimit(maxBytes: number): ReadLimit {
  return { maxBytes, mayHold: (sizeBytes) => sizeBytes <= maxBytes };
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
