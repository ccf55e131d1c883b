import type { DatabaseSync } from "node:sqlite";
import type { Logger } from "pino";
import { toDeletionKey } from "../port/ids.ts";
import { NO_RIGHT } from "../port/right.ts";
import { type Clock, createClock } from "../store/clock.ts";
import { createStoredParser } from "../store/values.ts";
import type { Entry, Journal, JournalReader, LaneRight } from "./journal.ts";
import { storedEvent } from "./stored-event.ts";

/** How long an event's key stays claimed. Platforms can deliver an event again after a day. */
const CLAIM_TTL_MS = 48 * 3_600_000;
const SWEEP_INTERVAL_MS = 3_600_000;
/** There is only one partition, because no other process uses the database file. */
const PARTITION = 0;

export interface SqliteJournalOptions {
  database: DatabaseSync;
  log: Logger;
  /** The clock by which claims age. Default: the database's clock. */
  now?: Clock;
}

/**
 * The journal of a single process. A row contains its event until the work is done. After that, the row is only a
 * claim. Unreadable events are skipped.
 */
export function createSqliteJournal({ database, log, now = createClock(database) }: SqliteJournalOptions): Journal {
  const sql = prepare(database);
  const parse = createStoredParser(storedEvent, "queue_event", log);
  /** Ids of entries whose current start is counted in the database. */
  const counted = new Set<string>();
  let reader: JournalReader | undefined;

  function toEntries(rows: readonly Record<string, unknown>[]): Entry[] {
    return rows.flatMap(({ seq, event: text, begun }) => {
      const event = parse(String(text));
      return event === undefined ? [] : { id: String(seq), event, partition: PARTITION, deaths: Number(begun) };
    });
  }

  function sweep(): void {
    try {
      sql.expire.run(now() - CLAIM_TTL_MS);
    } catch (error) {
      log.warn({ err: error }, "old claims could not be deleted; retrying in an hour");
    }
  }

  /** Takes back a start. If the process dies, each start that is still counted counts as a death. */
  function uncount(id: string): void {
    if (counted.delete(id)) sql.uncount.run(id);
  }

  /** Counts starts only for the first entry, because the turn is named after it. */
  function createRight(first: string): LaneRight {
    return {
      // No other process can take over.
      held: NO_RIGHT,
      async settle(done) {
        sql.clear.run(toIds(done));
        counted.delete(first);
      },
      uncount: async () => uncount(first),
      countAnew: async () => void sql.countAnew.run(first),
      revoke() {},
    };
  }

  sweep();
  const sweeping = setInterval(sweep, SWEEP_INTERVAL_MS).unref();

  return {
    async accept(event) {
      const { key, kind, author, reply } = event;
      if (kind === "message" && sql.claimed.get(toDeletionKey(key)) !== undefined) return false;
      const row = sql.insert.get(key, reply.platform, author.id, JSON.stringify(event), now());
      if (row === undefined) return false;
      reader?.onEntries(PARTITION, [{ id: String(row["seq"]), event, partition: PARTITION, deaths: 0 }], true);
      return true;
    },
    open(newReader) {
      reader = newReader;
      reader.onTaken(PARTITION);
      reader.onEntries(PARTITION, toEntries(sql.waiting.all()), true);
    },
    async start() {},
    async begin(_, entries) {
      const [{ id } = { id: "" }] = entries;
      const right = createRight(id);
      try {
        const there = new Set(sql.there.all(toIds(entries)).map(({ seq }) => String(seq)));
        const gone = entries.filter((entry) => !there.has(entry.id));
        if (gone.length > 0) return { type: "gone", entries: gone };
        const row = sql.count.get(id);
        counted.add(id);
        return { type: "started", right, deaths: Number(row?.["begun"] ?? 1) - 1 };
      } catch (err) {
        // If the disk rejects writes, doing the work uncounted is better than waiting for the disk.
        log.warn({ err }, "the start of work could not be stored");
        return { type: "started", right, deaths: 0 };
      }
    },
    async conversationOf(messageId) {
      const rows = toEntries(sql.ofMessage.all(messageId));
      return rows.find(({ event }) => event.kind === "message")?.event.conversationId;
    },
    tell: async (event) => reader?.onTold(event),
    async forget(person) {
      sql.forget.run(person.platform, person.authorId, person.exceptKey);
      await reader?.onErase(PARTITION, person);
    },
    async erase(isErased) {
      const erased = toEntries(sql.waiting.all()).filter(({ event }) => isErased(event));
      sql.clear.run(toIds(erased));
      return erased.map(({ event }) => event);
    },
    // The log already reports given-up work, and no other process reads this file.
    async noteGivenUp() {},
    places: (own) => own,
    processes: () => 1,
    async handOver() {
      for (const id of counted) uncount(id);
    },
    async close() {
      clearInterval(sweeping);
    },
  };
}

function prepare(database: DatabaseSync) {
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
  const those = "WHERE seq IN (SELECT value FROM json_each(?))";
  const isWaiting = "SELECT seq, event, begun FROM queue_event WHERE event IS NOT NULL";
  const sql = (text: string) => database.prepare(text);
  return {
    claimed: sql("SELECT 1 FROM queue_event WHERE key = ?"),
    insert: sql(
      "INSERT INTO queue_event (key, platform, author, event, accepted_at) VALUES (?, ?, ?, ?, ?) ON CONFLICT (key) DO NOTHING RETURNING seq",
    ),
    waiting: sql(`${isWaiting} ORDER BY seq`),
    ofMessage: sql(`${isWaiting} AND CASE WHEN json_valid(event) THEN event ->> 'messageId' END = ? ORDER BY seq`),
    there: sql(`SELECT seq FROM queue_event ${those} AND event IS NOT NULL`),
    clear: sql(`UPDATE queue_event SET event = NULL, author = '' ${those}`),
    expire: sql("DELETE FROM queue_event WHERE event IS NULL AND accepted_at < ?"),
    forget: sql("UPDATE queue_event SET event = NULL, author = '' WHERE platform = ? AND author = ? AND key <> ?"),
    count: sql("UPDATE queue_event SET begun = begun + 1 WHERE seq = ? RETURNING begun"),
    uncount: sql("UPDATE queue_event SET begun = MAX(begun - 1, 0) WHERE seq = ?"),
    countAnew: sql("UPDATE queue_event SET begun = 0 WHERE seq = ?"),
  };
}

function toIds(entries: readonly Entry[]): string {
  return JSON.stringify(entries.map(({ id }) => Number(id)));
}
