import type { ByteShare } from "../concurrency/byte-budget.ts";
import { untilAborted } from "../concurrency/deadlines.ts";

export interface ReadLimit {
  maxBytes: number;
  /** Counts the bytes. The caller that opened the share must release it. */
  share: Pick<ByteShare, "hold">;
}

/** The first size of the buffer. Most attachments are shorter. */
const FIRST_BYTES = 4 * 1024;

/**
 * Reads a source to the end, and always closes it. `too-large`: more than `maxBytes`. `no-room`: more than the share
 * allows. Rejects at once with the signal's reason, or with the source's error.
 */
export async function readBounded(
  source: AsyncIterable<Uint8Array>,
  { maxBytes, share }: ReadLimit,
  signal: AbortSignal,
): Promise<Uint8Array | "too-large" | "no-room"> {
  const iterator = source[Symbol.asyncIterator]();
  // Use one buffer: a list of chunks would need a hundred times the memory if each chunk had one byte.
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

/** Never await this, because a source that hangs would never finish. */
async function close(iterator: AsyncIterator<Uint8Array>): Promise<void> {
  try {
    await iterator.return?.();
  } catch {
    // Ignore the error, because the bytes have already been read or dropped.
  }
}
