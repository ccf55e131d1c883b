/**
 * A map that holds at most `maxEntries`: setting an entry makes it the newest, and the oldest ones go. Reading changes
 * nothing. A class, because it is a `Map` in everything else.
 */
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
