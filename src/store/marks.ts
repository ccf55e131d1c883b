/** What processes with queues of their own share: marks that only one of them can set. */
export interface Marks {
  /** Sets the mark for this long where there is none. Resolves to the one that stands there. */
  claim(key: string, mark: string, ttlMs: number): Promise<string>;
  set(key: string, mark: string, ttlMs: number): Promise<void>;
}
