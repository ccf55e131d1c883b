import type { DatabaseSync } from "node:sqlite";
import type { Logger } from "pino";
import type { InboundEvent } from "../../port/events.ts";
import { toDeletionKey } from "../../port/ids.ts";
import { type Clock, createClock } from "../../store/clock.ts";
import { createStoredParser } from "../../store/values.ts";
import { storedEvent } from "../stored-event.ts";

/** A claim outlives its event, so that a delivery repeated a day later is still recognised. */
const CLAIM_TTL_MS = 48 * 3_600_000;

/** Accepted events on disk: a row holds its event until the work is done, and is a claim that names nobody after that. */
export interface EventTable {
  /** Claims the key and stores the event, durably. False when the key had been claimed before. */
  claim(event: InboundEvent): boolean;
  /** Events whose work is not done, in the order in which they were accepted. Unreadable ones stay and are left out. */
  waiting(log: Logger): InboundEvent[];
  finish(events: readonly InboundEvent[]): void;
  /** Counts the beginning of work. Returns the deaths of the process since one of them last made progress. */
  countBegun(events: readonly InboundEvent[]): number;
  /** Their work has ended some way or other, or the process is to end anyway: its death is not to be blamed on them. */
  uncount(events: readonly InboundEvent[]): void;
  /** Their work has come further than ever before: earlier deaths do not count any more. */
  countAnew(events: readonly InboundEvent[]): void;
  /** Keys of the events on whose work the process has died so often. */
  diedOn(times: number): Set<string>;
  /** Removes claims that are too old to matter. */
  sweep(): void;
  /** Erases an author's waiting events but this one. Claims stay: a repeated delivery must not be answered. */
  forget(platform: string, authorId: string, exceptKey: string): void;
}

/** Claims grow old by the database's own clock. */
export function openEventTable(database: DatabaseSync, now: Clock = createClock(database)): EventTable {
  database.exec(`
    CREATE TABLE IF NOT EXISTS queue_event (
      seq INTEGER PRIMARY KEY AUTOINCREMENT,
      key TEXT NOT NULL UNIQUE,
      platform TEXT NOT NULL,
      author TEXT NOT NULL,
      event TEXT,
      accepted_at INTEGER NOT NULL,
      begun INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE INDEX IF NOT EXISTS queue_event_waiting ON queue_event (seq) WHERE event IS NOT NULL;
    CREATE INDEX IF NOT EXISTS queue_event_author ON queue_event (platform, author);
  `);
  addColumn(database, "begun");
  const insert = database.prepare(
    "INSERT INTO queue_event (key, platform, author, event, accepted_at) VALUES (?, ?, ?, ?, ?) ON CONFLICT (key) DO NOTHING",
  );
  const selectDeletion = database.prepare("SELECT 1 FROM queue_event WHERE key = ?");
  const select = database.prepare("SELECT event FROM queue_event WHERE event IS NOT NULL ORDER BY seq");
  const those = "WHERE key IN (SELECT value FROM json_each(?))";
  const clear = database.prepare(`UPDATE queue_event SET event = NULL, author = '' ${those}`);
  const expire = database.prepare("DELETE FROM queue_event WHERE event IS NULL AND accepted_at < ?");
  const erase = database.prepare(
    "UPDATE queue_event SET event = NULL, author = '' WHERE platform = ? AND author = ? AND key <> ?",
  );
  const begin = database.prepare(`UPDATE queue_event SET begun = begun + 1 ${those} RETURNING begun`);
  const unbegin = database.prepare(`UPDATE queue_event SET begun = MAX(begun - 1, 0) ${those}`);
  const beginAnew = database.prepare(`UPDATE queue_event SET begun = 0 ${those}`);
  const selectBegun = database.prepare("SELECT key FROM queue_event WHERE event IS NOT NULL AND begun >= ?");

  return {
    claim(event) {
      const { key, kind, author, reply } = event;
      if (kind === "message" && selectDeletion.get(toDeletionKey(key)) !== undefined) return false;
      return insert.run(key, reply.platform, author.id, JSON.stringify(event), now()).changes === 1;
    },
    waiting(log) {
      const parse = createStoredParser(storedEvent, "queue_event", log);
      return select.all().flatMap(({ event }) => parse(String(event)) ?? []);
    },
    finish: (events) => void clear.run(toKeys(events)),
    countBegun: (events) => Math.max(0, ...begin.all(toKeys(events)).map(({ begun }) => Number(begun) - 1)),
    uncount: (events) => void unbegin.run(toKeys(events)),
    countAnew: (events) => void beginAnew.run(toKeys(events)),
    diedOn: (times) => new Set(selectBegun.all(times).map(({ key }) => String(key))),
    sweep: () => void expire.run(now() - CLAIM_TTL_MS),
    forget: (platform, authorId, exceptKey) => void erase.run(platform, authorId, exceptKey),
  };
}

function toKeys(events: readonly InboundEvent[]): string {
  return JSON.stringify(events.map(({ key }) => key));
}

/** Adds a column to a table that an earlier version made without it. */
function addColumn(database: DatabaseSync, name: "begun"): void {
  const columns = database.prepare("SELECT name FROM pragma_table_info('queue_event')").all();
  if (columns.some((column) => column["name"] === name)) return;
  database.exec(`ALTER TABLE queue_event ADD COLUMN ${name} INTEGER NOT NULL DEFAULT 0`);
}
