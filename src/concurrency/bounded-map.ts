/** A map of its `maxEntries` newest entries. Setting an entry makes it the newest; reading does not. */
export class BoundedMap<K, V> extends Map<K, V> {
  readonly maxEntries: number;

  constructor(maxEntries: number) {
    super();
    this.maxEntries = maxEntries;
  }

  override set(key: K, value: V): this {
    this.delete(key);
    super.set(key, value);
    for (const oldest of this.keys()) {
      if (this.size <= this.maxEntries) break;
      this.delete(oldest);
    }
    return this;
  }
}
