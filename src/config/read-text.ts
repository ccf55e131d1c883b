import { closeSync, openSync, readSync } from "node:fs";

/** Maximum size of a configuration file, far above what a policy or a list of tool servers needs. */
const MAX_BYTES = 500_000;

/** The message continues a sentence that starts with the variable's name. */
export class TooLargeError extends Error {
  override readonly name = "TooLargeError";
}

/** Reads a configuration file. Throws a `TooLargeError` if it is larger than the limit. */
export function readBoundedText(path: string): string {
  const bytes = Buffer.allocUnsafe(MAX_BYTES + 1);
  const file = openSync(path, "r");
  try {
    let length = 0;
    // Do not trust the file's size: a file can grow, and a pipe or a device has no size.
    for (let read = -1; read !== 0 && length < bytes.length; length += read) {
      read = readSync(file, bytes, length, bytes.length - length, null);
    }
    if (length > MAX_BYTES) throw new TooLargeError(`must not have more than ${MAX_BYTES} bytes`);
    return bytes.toString("utf8", 0, length);
  } finally {
    closeSync(file);
  }
}
