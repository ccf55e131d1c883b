/** The oldest version that this code reads. Palaver up to 0.2 marked SQLite files with 1, and did not mark Redis. */
const OLDEST_VERSION = 2;

/** Each migration converts a stored value to the next version. The first migration starts from the oldest version. */
const MIGRATIONS: ReadonlyArray<(namespace: string, value: unknown) => unknown> = [];

/**
 * The version of all stored data. SQLite files, Redis databases and each value contain this number. To change the shape
 * of a stored value, append a migration to the list.
 */
export const STORED_VERSION = OLDEST_VERSION + MIGRATIONS.length;

/** Migrates a stored value to the current version; undefined if this code does not know the value's version. */
export function migrate(namespace: string, version: number, value: unknown): unknown {
  if (!isReadable(version)) return undefined;
  return MIGRATIONS.slice(version - OLDEST_VERSION).reduce((older, step) => step(namespace, older), value);
}

/**
 * Explains why a store of this version cannot be used; undefined if it can. `store` names the store and its address.
 * `startEmpty` says how to start without its data.
 */
export function describeRefusal(version: number, store: string, startEmpty: string): string | undefined {
  if (isReadable(version)) return undefined;
  if (version > STORED_VERSION) {
    return `${store} holds data from a newer Palaver (layout ${version}, this one reads ${STORED_VERSION}): update Palaver, or ${startEmpty}.`;
  }
  return `${store} holds data from a Palaver before 0.3, which this version cannot read: run version 0.2 to keep using it, or ${startEmpty}.`;
}

function isReadable(version: number): boolean {
  return version >= OLDEST_VERSION && version <= STORED_VERSION;
}
