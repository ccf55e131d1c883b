/** Runs tasks that share a key one after another, and tasks with different keys side by side. */
export type KeyedTurns = <T>(key: string, task: () => Promise<T>) => Promise<T>;

export function createKeyedTurns(): KeyedTurns {
  const tails = new Map<string, Promise<void>>();

  return (key, task) => {
    const result = (tails.get(key) ?? Promise.resolve()).then(task);
    // The tail swallows failures so that one failed task does not fail the next.
    const tail = result.then(noop, noop).finally(() => {
      if (tails.get(key) === tail) tails.delete(key);
    });
    tails.set(key, tail);
    return result;
  };
}

function noop(): void {}
