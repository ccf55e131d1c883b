/**
 * Runs a bounded number of tasks at a time. Those who wait take turns: whoever brings many tasks does not hold up somebody who brings
 * one. Rejects with the signal's reason when it aborts while the task waits; a task that runs hears of it itself.
 */
export type FairTurns = <T>(owner: string, task: () => Promise<T>, signal: AbortSignal) => Promise<T>;

type Begin = () => void;

export function createFairTurns(places = 1): FairTurns {
  /** In the order of their turns. Whoever waits for nothing is not in it. */
  const waiting = new Map<string, Begin[]>();
  let running = 0;

  /** Hands the place of a task that has ended over to whoever waits for one. */
  function next(): void {
    const [turn] = waiting;
    if (turn === undefined) {
      running -= 1;
      return;
    }
    const [owner, [begin, ...rest]] = turn;
    // Whoever waits for more goes to the end.
    waiting.delete(owner);
    if (rest.length > 0) waiting.set(owner, rest);
    begin?.();
  }

  function leave(owner: string, begin: Begin): void {
    const rest = waiting.get(owner)?.filter((other) => other !== begin) ?? [];
    if (rest.length > 0) waiting.set(owner, rest);
    else waiting.delete(owner);
  }

  function untilTurn(owner: string, signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const onAbort = () => {
      leave(owner, begin);
      reject(signal.reason);
    };
    const begin = () => {
      signal.removeEventListener("abort", onAbort);
      resolve();
    };
    signal.addEventListener("abort", onAbort, { once: true });
    waiting.set(owner, [...(waiting.get(owner) ?? []), begin]);
    return promise;
  }

  return async (owner, task, signal) => {
    signal.throwIfAborted();
    if (running < places) running += 1;
    else await untilTurn(owner, signal);
    try {
      return await task();
    } finally {
      next();
    }
  };
}
