/** Stores what the processes of a service report. Every promise rejects if the store is unavailable. */
export interface InsightStore {
  /** Adds a text to the front of a list and keeps the newest `max` texts. */
  push(list: string, text: string, max: number): Promise<void>;
  /** Resolves to the texts, newest first. */
  list(list: string): Promise<string[]>;
  /** Removes texts from a list. Ignores texts that are missing. */
  remove(list: string, texts: readonly string[]): Promise<void>;
  /** Stores the state of this process; it expires after `forMs`. */
  report(id: string, text: string, forMs: number): Promise<void>;
  /** Resolves to the latest reports of the live processes. */
  reports(): Promise<string[]>;
}
