import { closeSync, openSync, readSync } from "node:fs";

/** Far more than all rules and prices, or all tool servers, can take. */
const MAX_BYTES = 500_000;

/** The message completes a sentence that begins with the variable that names the file. */
export class TooLargeError extends Error {
  override readonly name = "TooLargeError";
}

/** Reads a file of the configuration, and never more of it than its bound. Throws a `TooLargeError` if it is longer. */
export function readBoundedText(path: string): string {
  const bytes = Buffer.allocUnsafe(MAX_BYTES + 1);
  const file = openSync(path, "r");
  try {
    let length = 0;
    // The size is not asked for: the file can grow, and a pipe or a device has none.
    for (let read = -1; read !== 0 && length < bytes.length; length += read) {
      read = readSync(file, bytes, length, bytes.length - length, null);
    }
    if (length > MAX_BYTES) throw new TooLargeError(`must not have more than ${MAX_BYTES} bytes`);
    return bytes.toString("utf8", 0, length);
  } finally {
    closeSync(file);
  }
}
