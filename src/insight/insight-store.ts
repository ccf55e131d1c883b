/** Stores the processes' reports and stories. Every promise rejects if the store is unavailable. */
export interface InsightStore {
  /** Adds a text to the front of a list, and drops all but the newest `max` texts. */
  push(list: string, text: string, max: number): Promise<void>;
  /** Resolves to the texts, newest first. */
  list(list: string): Promise<string[]>;
  /** Removes texts from a list. Missing texts are ignored. */
  remove(list: string, texts: readonly string[]): Promise<void>;
  /** Stores the state of this process for `forMs`. */
  report(id: string, text: string, forMs: number): Promise<void>;
  /** Resolves to the latest report of each live process. */
  reports(): Promise<string[]>;
}
