import type { DatabaseSync } from "node:sqlite";
import type { InboundEvent } from "../adapter.ts";

/** A claim outlives its event, so that a delivery repeated a day later is still recognised. */
const CLAIM_TTL_MS = 48 * 3_600_000;

/** Accepted events on disk: a row holds its event until the work is done, and is a claim that names nobody after that. */
export interface EventTable {
  /** Claims the key and stores the event, durably. False when the key had been claimed before. */
  claim(event: InboundEvent): boolean;
  /** Events whose work is not done, in the order in which they were accepted. */
  waiting(): InboundEvent[];
  finish(events: readonly InboundEvent[]): void;
  /** Removes claims that are too old to matter. */
  sweep(): void;
  /**
   * Erases what waits of an author, except the event with this key. The claims stay: a delivery repeated after the
   * erasure must not be answered.
   */
  forget(platform: string, authorId: string, exceptKey: string): void;
}

export function openEventTable(database: DatabaseSync): EventTable {
  database.exec(`
    CREATE TABLE IF NOT EXISTS queue_event (
      seq INTEGER PRIMARY KEY AUTOINCREMENT,
      key TEXT NOT NULL UNIQUE,
      platform TEXT NOT NULL,
      author TEXT NOT NULL,
      event TEXT,
      accepted_at INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX IF NOT EXISTS queue_event_waiting ON queue_event (seq) WHERE event IS NOT NULL;
    CREATE INDEX IF NOT EXISTS queue_event_author ON queue_event (platform, author);
  `);
  const insert = database.prepare(
    "INSERT INTO queue_event (key, platform, author, event, accepted_at) VALUES (?, ?, ?, ?, ?) ON CONFLICT (key) DO NOTHING",
  );
  const select = database.prepare("SELECT event FROM queue_event WHERE event IS NOT NULL ORDER BY seq");
  const clear = database.prepare(
    "UPDATE queue_event SET event = NULL, author = '' WHERE key IN (SELECT value FROM json_each(?))",
  );
  const expire = database.prepare("DELETE FROM queue_event WHERE event IS NULL AND accepted_at < ?");
  const erase = database.prepare(
    "UPDATE queue_event SET event = NULL, author = '' WHERE platform = ? AND author = ? AND key <> ?",
  );

  return {
    claim(event) {
      const { key, author, reply } = event;
      return insert.run(key, reply.platform, author.id, JSON.stringify(event), Date.now()).changes === 1;
    },
    waiting: () => select.all().map(({ event }) => JSON.parse(String(event)) as InboundEvent),
    finish: (events) => void clear.run(JSON.stringify(events.map(({ key }) => key))),
    sweep: () => void expire.run(Date.now() - CLAIM_TTL_MS),
    forget: (platform, authorId, exceptKey) => void erase.run(platform, authorId, exceptKey),
  };
}
