import type { DatabaseSync } from "node:sqlite";
import { transact } from "./database.ts";

/** Whole numbers by name, such as `{ tokens: 12 }`. */
export type Counts = Readonly<Record<string, number>>;

/** Amounts to add to the counts of a row. A missing row or count starts at 0. */
export interface Addition {
  row: string;
  counts: Counts;
  /** A new row lives at least this long. Later additions need not extend its life. */
  ttlMs: number;
}

/** An upper limit: in one row, the named counts can sum up to `most`. */
export interface Bound {
  row: string;
  counts: readonly string[];
  most: number;
  by: number;
  /** The limit does not apply while a row of this name exists. */
  unless: string;
}

/** Additions that are made only if every bound has room for them. The actual amounts replace them later. */
export interface Reservation {
  /** Unique. A second reservation with the same id changes nothing. */
  id: string;
  bounds: readonly Bound[];
  additions: readonly Addition[];
}

/** Further additions that are made in the same step. They have their own id. */
export interface Also {
  id: string;
  additions: readonly Addition[];
}

/** Sums that all processes change in atomic steps. Repeating a failed operation (except `list`) never counts twice. */
export interface Counters {
  /**
   * Makes all additions and resolves to undefined. If one of the bounds has no room for them, makes none and resolves
   * to the room of each bound. Rejects with a `FencedError` if another process owns the work.
   */
  reserve(reservation: Reservation): Promise<number[] | undefined>;
  /**
   * Adds once per `id`. If a reservation with this id was made, adds the `corrections`, otherwise the `additions`. Pass
   * no `corrections` if no reservation was made. Resolves to false if this id was added before. In the same step, adds
   * `also`, once per id of its own.
   */
  add(id: string, additions: readonly Addition[], corrections?: readonly Addition[], also?: Also): Promise<boolean>;
  read(rows: readonly string[]): Promise<Map<string, Counts>>;
  /** Lists the rows whose names start with `prefix`, sorted by name. */
  list(prefix: string): Promise<Array<[row: string, counts: Counts]>>;
  /** Renames a row. If a row of the new name exists, adds the counts to that row. */
  rename(row: string, to: string): Promise<void>;
  remove(row: string): Promise<void>;
}

/** How long an id is stored. Work that is older never resumes, so its id cannot be used again. */
export const ONCE_MS = 8 * 86_400_000;
/** How long the id of a replaced reservation is stored. Afterwards only a repeated call could use the id. */
export const REPLACED_MS = 3_600_000;
const SWEEP_EVERY_MS = 3_600_000;

/** Counts in the database of this process. `now` is a `Clock`. */
export function createSqliteCounters(database: DatabaseSync, now: () => number): Counters {
  const table = openTables(database);
  let sweptAt = 0;

  function apply(additions: readonly Addition[]): void {
    for (const { row, counts, ttlMs } of additions) {
      for (const [count, by] of Object.entries(counts)) if (by !== 0) table.add.run(row, count, by, now() + ttlMs);
    }
  }

  function sweep(): void {
    if (now() - sweptAt < SWEEP_EVERY_MS) return;
    sweptAt = now();
    table.expireSums.run(now());
    table.expireOnce.run(now());
  }

  const readRow = (row: string) => toCounts(table.row.all(row, now()));

  function toRoom({ row, counts, most, by, unless }: Bound): number {
    const counted = readRow(row);
    const room = counts.reduce((left, count) => left - (counted[count] ?? 0), most);
    return table.row.get(unless, now()) === undefined ? room : Math.max(room, by);
  }

  function makeReservation({ id, bounds, additions }: Reservation): number[] | undefined {
    sweep();
    if (table.isKnown.get(id, toReservedId(id)) !== undefined) return undefined;
    const rooms = bounds.map(toRoom);
    if (bounds.some(({ by }, index) => (rooms[index] ?? 0) < by)) return rooms;
    table.once.run(toReservedId(id), now() + ONCE_MS);
    apply(additions);
    return undefined;
  }

  return {
    reserve: async (reservation) => transact(database, () => makeReservation(reservation)),
    add: async (id, additions, corrections = [], also) =>
      transact(database, () => {
        sweep();
        if (also !== undefined && table.once.run(also.id, now() + ONCE_MS).changes === 1) apply(also.additions);
        const isReserved = table.forget.run(toReservedId(id)).changes === 1;
        const isNew = table.once.run(id, now() + (isReserved ? REPLACED_MS : ONCE_MS)).changes === 1;
        if (isNew) apply(isReserved ? corrections : additions);
        return isNew;
      }),
    read: async (rows) => new Map(rows.map((row) => [row, readRow(row)])),
    async list(prefix) {
      const rows = Map.groupBy(table.rows.all(prefix, `${prefix}\u{10FFFF}`, now()), (one) => String(one["row"]));
      return [...rows].map(([row, counts]) => [row, toCounts(counts)]);
    },
    rename: async (row, to) =>
      transact(database, () => {
        table.copy.run(to, row);
        table.remove.run(row);
      }),
    remove: async (row) => void table.remove.run(row),
  };
}

export function toCorrections(used: readonly Addition[], reserved: readonly Addition[]): Addition[] {
  const negated = reserved.map(({ counts, ...addition }) => {
    return { ...addition, counts: Object.fromEntries(Object.entries(counts).map(([count, by]) => [count, -by])) };
  });
  return sumUp([...used, ...negated]);
}

/** Merges the additions to the same row. */
function sumUp(additions: readonly Addition[]): Addition[] {
  const sums = new Map<string, Addition>();
  for (const { row, counts, ttlMs } of additions) {
    const sum = { ...sums.get(row)?.counts };
    for (const [count, by] of Object.entries(counts)) sum[count] = (sum[count] ?? 0) + by;
    sums.set(row, { ttlMs, ...sums.get(row), row, counts: sum });
  }
  return [...sums.values()];
}

export function toReservedId(id: string): string {
  return `reserved:${id}`;
}

function toCounts(rows: ReadonlyArray<Record<string, unknown>>): Counts {
  return Object.fromEntries(rows.map(({ count, amount }) => [String(count), Number(amount)]));
}

function openTables(database: DatabaseSync) {
  database.exec(`
    CREATE TABLE IF NOT EXISTS counted (
      row TEXT NOT NULL, count TEXT NOT NULL, amount INTEGER NOT NULL, expires INTEGER NOT NULL,
      PRIMARY KEY (row, count)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS counted_once (id TEXT PRIMARY KEY, expires INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  `);
  const upsert = `ON CONFLICT (row, count) DO UPDATE
    SET amount = amount + excluded.amount, expires = MAX(expires, excluded.expires)`;
  return {
    add: database.prepare(`INSERT INTO counted (row, count, amount, expires) VALUES (?, ?, ?, ?) ${upsert}`),
    copy: database.prepare(
      `INSERT INTO counted (row, count, amount, expires)
       SELECT ?, count, amount, expires FROM counted WHERE row = ? ${upsert}`,
    ),
    remove: database.prepare("DELETE FROM counted WHERE row = ?"),
    // Skip zeros: a removed reservation leaves a 0 until its row expires.
    row: database.prepare("SELECT count, amount FROM counted WHERE row = ? AND amount <> 0 AND expires > ?"),
    rows: database.prepare(
      "SELECT row, count, amount FROM counted WHERE row >= ? AND row < ? AND amount <> 0 AND expires > ? ORDER BY row",
    ),
    expireSums: database.prepare("DELETE FROM counted WHERE expires <= ?"),
    once: database.prepare("INSERT OR IGNORE INTO counted_once (id, expires) VALUES (?, ?)"),
    isKnown: database.prepare("SELECT 1 FROM counted_once WHERE id IN (?, ?)"),
    forget: database.prepare("DELETE FROM counted_once WHERE id = ?"),
    expireOnce: database.prepare("DELETE FROM counted_once WHERE expires <= ?"),
  };
}
