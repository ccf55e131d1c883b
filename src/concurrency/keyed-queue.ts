export interface KeyedQueue {
  /** Runs tasks with the same key one after another, and tasks with different keys in parallel. */
  run<T>(key: string, task: () => Promise<T>): Promise<T>;
  /** Resolves when all tasks that `run` has received until now have ended. */
  idle(): Promise<void>;
}

export function createKeyedQueue(): KeyedQueue {
  const tails = new Map<string, Promise<void>>();

  return {
    run(key, task) {
      const result = (tails.get(key) ?? Promise.resolve()).then(task);
      // The tail swallows failures, so that one failed task does not fail the next.
      const tail = result.then(noop, noop).finally(() => {
        if (tails.get(key) === tail) tails.delete(key);
      });
      tails.set(key, tail);
      return result;
    },
    async idle() {
      await Promise.all(tails.values());
    },
  };
}

function noop(): void {}
