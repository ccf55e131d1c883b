import type { DatabaseSync } from "node:sqlite";
import { z } from "zod";
import { transact } from "./database.ts";
import { parseStored } from "./values.ts";

/** Whole numbers by name, such as `{ tokens: 12 }`. */
export type Counts = Readonly<Record<string, number>>;

/** An amount that is added to each count of a row. Absent rows and counts are 0. */
export interface Addition {
  row: string;
  counts: Counts;
  /** The row expires so long after its last addition. */
  ttlMs: number;
}

/** A hold on one count of a row: counted and held amounts together never exceed `most`. */
export interface Bound {
  row: string;
  count: string;
  by: number;
  most: number;
}

/** Part of several counts, kept for one piece of work until that is settled. */
export interface Hold {
  /** Names the piece of work; a later attempt uses the same name. */
  id: string;
  /** Tells the attempts at it apart. */
  token: string;
  bounds: readonly Bound[];
  /** Counted in its place when nobody settles it: when another attempt holds under its id, and after `forMs`. */
  loss: readonly Addition[];
  /** Nothing is counted in its place until it is confirmed. */
  isTentative?: true;
  forMs: number;
}

/** Sums changed in single steps by all processes. A rejected operation but `list` may be repeated: it counts once. */
export interface Counters {
  /**
   * Holds all bounds or none. Resolves to the room each had; held if none was below its `by`. Rejects with a `FencedError`
   * where the work is somebody else's by now: a late hold would end theirs.
   */
  hold(hold: Hold): Promise<number[]>;
  /** From now on the loss of a hold counts. Resolves to false where it had ended before. */
  confirm(id: string, token: string): Promise<boolean>;
  /** Ends a hold and counts what was used instead. Resolves to false where it had ended before: then nothing is counted. */
  settle(id: string, token: string, additions: readonly Addition[]): Promise<boolean>;
  /** Counts once for each `once`. Resolves to false where it was counted before. */
  add(once: string, additions: readonly Addition[]): Promise<boolean>;
  read(row: string): Promise<Counts>;
  /** All rows whose names begin like this, in the order of their names. */
  list(prefix: string): Promise<Array<[row: string, counts: Counts]>>;
  /** Gives a row another name; what is counted under that already stays too. */
  rename(row: string, to: string): Promise<void>;
  remove(row: string): Promise<void>;
  /** Reads the held amounts: `read` and `list` know only the counted ones. */
  readHeld(row: string): Promise<Counts>;
  countHolds(): Promise<number>;
}

/** How long it is remembered that something was counted: no work is taken up again after that. */
export const ONCE_MS = 8 * 86_400_000;
const SWEEP_EVERY_MS = 3_600_000;

/** The part of a stored hold that counts when it ends unsettled. */
const storedHold = z.object({
  loss: z.array(z.object({ row: z.string(), counts: z.record(z.string(), z.number()), ttlMs: z.number() })),
  isTentative: z.literal(true).exactOptional(),
});

type Loss = z.infer<typeof storedHold>;

/** Sums in the database of one process. `now`: milliseconds, see `Clock`. */
export function createSqliteCounters(database: DatabaseSync, now: () => number): Counters {
  const table = openTables(database);
  let sweptAt = 0;

  function apply(additions: readonly Addition[]): void {
    for (const { row, counts, ttlMs } of additions) {
      for (const [count, by] of Object.entries(counts)) if (by !== 0) table.add.run(row, count, by, now() + ttlMs);
    }
  }

  /** One that cannot be read has no loss. */
  function end(id: string): Loss {
    const hold = parseStored(storedHold, String(table.hold.get(id)?.["body"])) ?? { loss: [] };
    table.release.run(id);
    table.unhold.run(id);
    return hold;
  }

  function applyLoss({ isTentative, loss }: Loss): void {
    if (isTentative !== true) apply(loss);
  }

  /** Ends what nobody has settled in time, and now and then forgets what is too old. */
  function sweep(): void {
    for (const { id } of table.lapsed.all(now())) applyLoss(end(String(id)));
    if (now() - sweptAt < SWEEP_EVERY_MS) return;
    sweptAt = now();
    table.expireSums.run(now());
    table.expireOnce.run(now());
  }

  function readCount(row: string, count: string): number {
    return Number(table.count.get(row, count, now())?.["amount"] ?? 0);
  }

  function makeHold(hold: Hold): number[] {
    sweep();
    const former = table.hold.get(hold.id);
    if (former !== undefined) {
      const lost = end(hold.id);
      if (former["token"] !== hold.token) applyLoss(lost);
    }
    const left = hold.bounds.map(
      ({ row, count, most }) => most - readCount(row, count) - Number(table.heldOf.get(row, count)?.["amount"] ?? 0),
    );
    if (hold.bounds.some(({ by }, index) => (left[index] ?? 0) < by)) return left;
    table.addHold.run(hold.id, hold.token, now() + hold.forMs, JSON.stringify(hold));
    for (const { row, count, by } of hold.bounds) table.addHeld.run(hold.id, row, count, by);
    return left;
  }

  return {
    hold: async (hold) => transact(database, () => makeHold(hold)),
    confirm: async (id, token) => Number(table.confirm.run(id, token).changes) === 1,
    settle: async (id, token, additions) =>
      transact(database, () => {
        if (table.hold.get(id)?.["token"] !== token) return false;
        end(id);
        apply(additions);
        return true;
      }),
    add: async (once, additions) =>
      transact(database, () => {
        const isNew = table.once.run(once, now() + ONCE_MS).changes === 1;
        if (isNew) apply(additions);
        return isNew;
      }),
    read: async (row) => toCounts(table.row.all(row, now())),
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
    readHeld: async (row) => {
      transact(database, sweep);
      return toCounts(table.held.all(row));
    },
    countHolds: async () => {
      transact(database, sweep);
      return Number(table.holds.get()?.["count"]);
    },
  };
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
    CREATE TABLE IF NOT EXISTS hold (
      id TEXT PRIMARY KEY, token TEXT NOT NULL, until INTEGER NOT NULL, body TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS held (
      id TEXT NOT NULL, row TEXT NOT NULL, count TEXT NOT NULL, amount INTEGER NOT NULL,
      PRIMARY KEY (row, count, id)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS held_by_id ON held (id);
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
    count: database.prepare("SELECT amount FROM counted WHERE row = ? AND count = ? AND expires > ?"),
    row: database.prepare("SELECT count, amount FROM counted WHERE row = ? AND expires > ?"),
    rows: database.prepare(
      "SELECT row, count, amount FROM counted WHERE row >= ? AND row < ? AND expires > ? ORDER BY row",
    ),
    expireSums: database.prepare("DELETE FROM counted WHERE expires <= ?"),
    once: database.prepare("INSERT OR IGNORE INTO counted_once (id, expires) VALUES (?, ?)"),
    expireOnce: database.prepare("DELETE FROM counted_once WHERE expires <= ?"),
    hold: database.prepare("SELECT token, body FROM hold WHERE id = ?"),
    holds: database.prepare("SELECT COUNT(*) AS count FROM hold"),
    addHold: database.prepare("INSERT INTO hold (id, token, until, body) VALUES (?, ?, ?, ?)"),
    confirm: database.prepare("UPDATE hold SET body = json_remove(body, '$.isTentative') WHERE id = ? AND token = ?"),
    unhold: database.prepare("DELETE FROM hold WHERE id = ?"),
    lapsed: database.prepare("SELECT id FROM hold WHERE until <= ?"),
    addHeld: database.prepare("INSERT INTO held (id, row, count, amount) VALUES (?, ?, ?, ?)"),
    release: database.prepare("DELETE FROM held WHERE id = ?"),
    heldOf: database.prepare("SELECT SUM(amount) AS amount FROM held WHERE row = ? AND count = ?"),
    held: database.prepare("SELECT count, SUM(amount) AS amount FROM held WHERE row = ? GROUP BY count"),
  };
}
