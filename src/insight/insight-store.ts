/** Keeps what the processes of a service tell of themselves. Every promise rejects when the store does not answer. */
export interface InsightStore {
  /** Puts a text at the head of a list, which keeps the newest `max`. */
  push(list: string, text: string, max: number): Promise<void>;
  /** Newest first. */
  list(list: string): Promise<string[]>;
  /** Takes texts out of a list, those of them that stand there. */
  remove(list: string, texts: readonly string[]): Promise<void>;
  /** Says what this process does; it counts for `forMs`. */
  report(id: string, text: string, forMs: number): Promise<void>;
  /** The latest reports of the live processes. */
  reports(): Promise<string[]>;
}
