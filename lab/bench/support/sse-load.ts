/** The load of the `sse` bench, shared by its server and its clients. */
export const STREAMS = 1_000;
export const CHUNKS_PER_SECOND = 20;
export const MEASURED_CHUNKS = 25;
/**
 * Chunks of each stream before the measurement, at a higher rate. Meanwhile the runtime compiles the hot paths, as in a
 * service that has run for a minute.
 */
const WARM_CHUNKS = 60;
const WARM_CHUNKS_PER_SECOND = 40;
/** During these chunks, a client that fell behind catches up. */
const SETTLING_CHUNKS = 8;
/** Chunks after the measurement, so that the ends of streams are not measured. */
const TRAILING_CHUNKS = 3;

export const CHUNKS_BEFORE: number = WARM_CHUNKS + SETTLING_CHUNKS;
export const CHUNKS: number = CHUNKS_BEFORE + MEASURED_CHUNKS + TRAILING_CHUNKS;

/** Returns how many chunks a stream should have received by then, as a fraction. */
export function countDue(elapsedMs: number): number {
  const warmMs = (WARM_CHUNKS * 1_000) / WARM_CHUNKS_PER_SECOND;
  if (elapsedMs < warmMs) return (elapsedMs * WARM_CHUNKS_PER_SECOND) / 1_000;
  return Math.min(CHUNKS, WARM_CHUNKS + ((elapsedMs - warmMs) * CHUNKS_PER_SECOND) / 1_000);
}

const CHUNK_BYTES = 270;

/** A chunk's event, padded to the usual size of hosted models' events. */
export const CHUNK_EVENT = toEvent({ content: " word" }, null, CHUNK_BYTES);
export const FIRST_EVENT = toEvent({ role: "assistant", content: "" }, null, CHUNK_BYTES);
export const LAST_EVENT = toEvent({}, "stop", CHUNK_BYTES);

/** The event on the socket, where HTTP/1.1 frames each chunk. */
export const CHUNK_FRAME = toFrame(CHUNK_EVENT);

export function toFrame(event: string): Buffer {
  return Buffer.from(`${Buffer.byteLength(event).toString(16)}\r\n${event}\r\n`);
}

function toEvent(delta: object, finishReason: string | null, sizeBytes: number): string {
  const write = (fingerprint: string): string => {
    const choices = [{ index: 0, delta, finish_reason: finishReason }];
    const chunk = { id: "chatcmpl-9f2b7c41d0", object: "chat.completion.chunk", created: 1_800_000_000 };
    return `data: ${JSON.stringify({ ...chunk, model: "bench-model", system_fingerprint: fingerprint, choices })}\n\n`;
  };
  return write("f".repeat(sizeBytes - write("").length));
}
