interface Entry<T> {
  value: T;
  sizeBytes: number;
  /** Unix milliseconds. */
  expiresAt: number;
}

/** Stores values in memory until they expire, within a total size. */
export interface ByteCache<T> {
  get(key: string): T | undefined;
  /**
   * Drops expired values, then the oldest ones, until the new one fits. Ignores a value larger than the whole cache.
   */
  set(key: string, value: T, sizeBytes: number, expiresAt: number): void;
  delete(key: string): void;
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
