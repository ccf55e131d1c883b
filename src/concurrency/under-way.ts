export interface UnderWay {
  /** Tracks a promise until it settles, and returns it. */
  hold<T>(work: Promise<T>): Promise<T>;
  /** Resolves when all work that is tracked at the moment has settled. */
  settled(): Promise<void>;
}

export function createUnderWay(): UnderWay {
  const works = new Set<Promise<void>>();
  return {
    hold(work) {
      const settling = work.then(noop, noop).finally(() => works.delete(settling));
      works.add(settling);
      return work;
    },
    settled: async () => void (await Promise.all(works)),
  };
}

function noop(): void {}
