const FRESH_MS = 60 * 60_000;
/** What could not be looked up is asked for again after this. */
const FAILED_MS = 60_000;
const MAX_KEPT = 10_000;

/** Answers that were given a while ago, and for a short while that none was given. Those who ask at once share one. */
export interface Answers {
  /** `find` must not reject. */
  get<T>(key: string, find: () => Promise<T | undefined>): Promise<T | undefined>;
}

interface Kept {
  value: Promise<unknown>;
  until: number;
}

export function createAnswers(now: () => number): Answers {
  const kept = new Map<string, Kept>();

  async function shorten(entry: Kept): Promise<void> {
    if ((await entry.value) === undefined) entry.until = now() + FAILED_MS;
  }

  return {
    async get<T>(key: string, find: () => Promise<T | undefined>) {
      const known = kept.get(key);
      if (known !== undefined && known.until > now()) return known.value as Promise<T | undefined>;
      const value = find();
      const entry = { value, until: now() + FRESH_MS };
      kept.delete(key);
      kept.set(key, entry);
      const [oldest] = kept.keys();
      if (kept.size > MAX_KEPT && oldest !== undefined) kept.delete(oldest);
      await shorten(entry);
      return value;
    },
  };
}
