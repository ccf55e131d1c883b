/** Work that has begun and not ended. */
export interface UnderWay {
  /** Passes the work on unchanged, and knows of it until it ends. */
  hold<T>(work: Promise<T>): Promise<T>;
  /** Resolves when everything that is held now has ended, well or not. */
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
