interface Entry<T> {
  value: T;
  sizeBytes: number;
  /** Unix milliseconds. */
  expiresAt: number;
}

/** Keeps values for a while, as many as fit. */
export interface ByteCache<T> {
  get(key: string): T | undefined;
  /** Expired values go first to make room, then the oldest; a value that does not fit at all is not kept. */
  set(key: string, value: T, sizeBytes: number, expiresAt: number): void;
  delete(key: string): void;
  /** Lets go of what is over. */
  sweep(): void;
}

export function createByteCache<T>(maxBytes: number, now: () => number): ByteCache<T> {
  const entries = new Map<string, Entry<T>>();
  let totalBytes = 0;

  function remove(key: string): void {
    totalBytes -= entries.get(key)?.sizeBytes ?? 0;
    entries.delete(key);
  }

  function sweep(): void {
    for (const [key, { expiresAt }] of entries) if (expiresAt <= now()) remove(key);
  }

  return {
    get(key) {
      const entry = entries.get(key);
      return entry === undefined || entry.expiresAt <= now() ? undefined : entry.value;
    },
    set(key, value, sizeBytes, expiresAt) {
      remove(key);
      if (sizeBytes > maxBytes) return;
      sweep();
      for (const oldest of entries.keys()) {
        if (totalBytes + sizeBytes <= maxBytes) break;
        remove(oldest);
      }
      entries.set(key, { value, sizeBytes, expiresAt });
      totalBytes += sizeBytes;
    },
    delete: remove,
    sweep,
  };
}
