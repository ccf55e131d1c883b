import { setTimeout as sleep } from "node:timers/promises";

const POLL_MS = 10;

/** Polls until `find` finds something. Resolves to undefined after the timeout. */
export async function lookFor<T>(find: () => T | undefined | false, withinMs: number): Promise<T | undefined> {
  const deadline = performance.now() + withinMs;
  for (;;) {
    const found = find();
    if (found !== undefined && found !== false) return found;
    if (performance.now() > deadline) return undefined;
    await sleep(POLL_MS);
  }
}
