/**
 * Runs a limited number of tasks at a time. Owners take turns, so an owner with many tasks does not delay an owner with
 * a single task. Rejects with the signal's reason if the signal aborts before the task starts; a running task must
 * watch the signal itself.
 */
export type FairTurns = <T>(owner: string, task: () => Promise<T>, signal: AbortSignal) => Promise<T>;

type Begin = () => void;

export function createFairTurns(places = 1): FairTurns {
  /** The waiting tasks by owner, in the order of the owners' turns. */
  const waiting = new Map<string, Begin[]>();
  let running = 0;

  /** Gives the slot of a finished task to the next owner. */
  function next(): void {
    const [turn] = waiting;
    if (turn === undefined) {
      running -= 1;
      return;
    }
    const [owner, [begin, ...rest]] = turn;
    // If the owner has further tasks, the owner moves to the end.
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
