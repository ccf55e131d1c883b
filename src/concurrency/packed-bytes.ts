import { once } from "node:events";
import type { Duplex } from "node:stream";

/** The child process's file descriptor for the byte stream, after the standard streams and the message channel. */
export const BYTES_FD = 4;

/** A message between processes. Its byte arrays are sent separately, in the order of `lengths`. */
export interface Packed {
  value: unknown;
  lengths: number[];
}

/** In a packed value, an object with this key stands for bytes. The key's value is the index of those bytes. */
const PLACE = "bytes of the stream";

/** Takes the bytes out of a plain value. Serializing bytes in a message would copy them and block the event loop. */
export function pack(value: unknown): { message: Packed; parts: Uint8Array[] } {
  const parts: Uint8Array[] = [];
  const replace = (part: unknown): unknown => {
    if (part instanceof Uint8Array) return { [PLACE]: parts.push(part) - 1 };
    if (Array.isArray(part)) return part.map(replace);
    if (typeof part !== "object" || part === null) return part;
    return Object.fromEntries(Object.entries(part).map(([name, inner]) => [name, replace(inner)]));
  };
  return { message: { value: replace(value), lengths: parts.map(({ byteLength }) => byteLength) }, parts };
}

/** Reads a message's bytes from the stream and puts them into its value. Never resolves if the stream ends early. */
export async function unpack({ value, lengths }: Packed, stream: Duplex): Promise<unknown> {
  const parts = lengths.map((length) => Buffer.allocUnsafe(length));
  for (const part of parts) await fill(part, stream);
  const restore = (part: unknown): unknown => {
    if (Array.isArray(part)) return part.map(restore);
    if (typeof part !== "object" || part === null) return part;
    if (PLACE in part) return parts[Number(part[PLACE])];
    return Object.fromEntries(Object.entries(part).map(([name, inner]) => [name, restore(inner)]));
  };
  return restore(value);
}

async function fill(part: Buffer, stream: Duplex): Promise<void> {
  for (let at = 0; at < part.byteLength; ) {
    const ready = Math.min(part.byteLength - at, stream.readableLength);
    const chunk = ready === 0 ? null : (stream.read(ready) as Buffer | null);
    if (chunk === null) await once(stream, "readable");
    else at += chunk.copy(part, at);
  }
}
