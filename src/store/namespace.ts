import { EventEmitter } from "node:events";
import type { BatchStore } from "./sqlite.ts";

/** Keys that `clear` deletes in one step. */
const CLEAR_KEYS = 500;

/**
 * One namespace of a store that others use too. A key is stored as `{namespace}:{key}`, so namespaces nest: key
 * `b:c` of namespace `a` and key `c` of namespace `a:b` are the same key. That is how keys that are found by walking
 * through a namespace can be written in one step with others.
 */
export function createNamespaceView(base: BatchStore, namespace: string): BatchStore {
  const prefix = `${namespace}:`;
  const toKey = (key: string) => prefix + key;

  async function* iterator(): AsyncGenerator<[string, string], void> {
    for await (const [key, value] of base.iterator<string>(namespace)) {
      // A key that expired since it was listed has no value.
      if (key !== undefined && value !== undefined) yield [key.slice(prefix.length), value];
    }
  }

  const view = {
    opts: base.opts,
    namespace,
    // The base tells its own listeners; a listener for each view would pile up.
    on: () => new EventEmitter(),
    iterator,
    get: (key: string) => base.get(toKey(key)),
    getMany: (keys: string[]) => base.getMany(keys.map(toKey)),
    set: (key: string, value: string, ttl?: number) => base.set(toKey(key), value, ttl),
    setMany: (entries: Array<{ key: string; value: string; ttl?: number }>) =>
      base.setMany(entries.map((entry) => ({ ...entry, key: toKey(entry.key) }))),
    delete: (key: string) => base.delete(toKey(key)),
    deleteMany: (keys: string[]) => base.deleteMany(keys.map(toKey)),
    has: (key: string) => base.has(toKey(key)),
    hasMany: (keys: string[]) => base.hasMany(keys.map(toKey)),
    async clear() {
      let keys: string[] = [];
      for await (const [key] of iterator()) {
        if (keys.push(toKey(key)) < CLEAR_KEYS) continue;
        await base.deleteMany(keys);
        keys = [];
      }
      if (keys.length > 0) await base.deleteMany(keys);
    },
    async disconnect() {},
  };
  return view as unknown as BatchStore;
}
