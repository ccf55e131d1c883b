/** Maximum number of messages from one server within `WINDOW_MS`. No useful server sends that many. */
const MAX_MESSAGES = 5_000;
const MAX_BYTES = 32 * 1024 * 1024;
const WINDOW_MS = 10_000;

/**
 * Returns a function that counts a server's messages and returns false if there are too many. `now` returns
 * milliseconds with any origin.
 */
export function createFloodGate(now: () => number = () => performance.now()): (sizeBytes: number) => boolean {
  let since = now();
  let messages = 0;
  let bytes = 0;

  return (sizeBytes) => {
    if (now() - since > WINDOW_MS) [since, messages, bytes] = [now(), 0, 0];
    messages += 1;
    bytes += sizeBytes;
    return messages <= MAX_MESSAGES && bytes <= MAX_BYTES;
  };
}
