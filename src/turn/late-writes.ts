import type { DatabaseSync } from "node:sqlite";
import type { Logger } from "pino";
import { z } from "zod";
import { untilAborted, waitAtMost } from "../concurrency/deadlines.ts";
import type { History } from "../history/history.ts";
import { historyEntry } from "../history/record.ts";
import { canBeTakenOver, FencedError } from "../port/right.ts";
import type { Services } from "../services/services.ts";
import { isStoreOutage } from "../store/outage.ts";
import { createStoredParser } from "../store/values.ts";
import { turnRecord } from "./record.ts";
import type { TurnRecords } from "./records.ts";

/** The largest number of characters in all pending answers. An answer has a few thousand, or more with tool results. */
const MAX_CHARS = 32 * 1024 * 1024;
const AGAIN_MS = 1_000;
/** The pause before a retry if a failure is not an outage. Such a failure will probably last. */
const AGAIN_AFTER_FAILURE_MS = 60_000;
/**
 * How long a turn waits for its write if no other process can take the turn over. A store restarts in about this time.
 */
const PATIENCE_MS = 7_000;
/** How long a turn waits for its write during a shutdown. */
const LAST_MS = 1_500;

const continuation = z.object({
  entry: historyEntry,
  aliases: z.array(z.string()).readonly().exactOptional(),
  after: z.string().optional(),
  news: z.object({ nothingUntil: z.number().optional(), followedSince: z.number().optional() }).optional(),
});
const lateWrite = continuation.extend({
  record: turnRecord,
  /** How many attempts the turn had made when it ended. */
  attempts: z.number().exactOptional(),
  /** The questions, if the history lacks them too. */
  asked: z.array(continuation).exactOptional(),
});

export type LateWrite = z.infer<typeof lateWrite>;

/**
 * Stores answers that the history could not store because the store was unavailable. Also stores their questions if the
 * history lacks them. The answers wait in this process's own database. When the store is available again, even after a
 * restart, one loop moves each answer to the history exactly once.
 */
export interface LateWrites {
  /**
   * Stores an answer in the history, now or later. If another process can take the turn over, waits until the history
   * has the answer, because that process must find it there. Otherwise waits for at most some seconds. Never rejects.
   */
  store(services: Pick<Services, "history" | "right" | "log">, late: LateWrite, signal: AbortSignal): Promise<void>;
  count(): number;
  /** Moves all pending answers to the history. If that fails, retries later. Never rejects. */
  replay(): Promise<void>;
}

interface LateWritesOptions {
  database: DatabaseSync;
  history: Pick<History, "appendLate">;
  records: Pick<TurnRecords, "load" | "save">;
  log: Logger;
  maxChars?: number;
}

interface Waiting {
  write(): Promise<void>;
  stored: PromiseWithResolvers<void>;
}

/**
 * Creates the late writes, and starts to move answers that an earlier process left. `history` and `records` need no
 * right: the turn's right may have ended long ago, and `appendLate` never replaces a later answer.
 */
export function createLateWrites(options: LateWritesOptions): LateWrites {
  const { database, log, maxChars = MAX_CHARS } = options;
  const table = openTable(database);
  const parse = createStoredParser(lateWrite, "unkept_answer", log);
  const waiting = new Map<string, Waiting>();
  let replaying: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;

  function keepOnDisk(late: LateWrite): void {
    const { id } = late.record;
    try {
      const dropped = table.add(id, late, maxChars);
      if (dropped.length > 0) {
        log.error({ turnIds: dropped }, "the oldest answers that wait for the history were dropped");
      }
      for (const turnId of dropped) leave(turnId);
    } catch (err) {
      log.error({ err, turnId: id }, "an answer that waits for the history could not be stored on disk");
    }
  }

  function drop(id: string): void {
    leave(id);
    try {
      table.remove(id);
    } catch (err) {
      log.warn({ err, turnId: id }, "an answer that is in the history could not be removed from the disk");
    }
  }

  function leave(id: string): void {
    waiting.get(id)?.stored.resolve();
    waiting.delete(id);
  }

  /** Moves one answer to the history. While the turn still waits, uses the turn's right. */
  async function move({ id, late }: Row): Promise<void> {
    const turn = waiting.get(id);
    try {
      await turn?.write();
    } catch (error) {
      if (!(error instanceof FencedError)) throw error;
      if (late !== undefined) await writeWithoutRight(options, late);
    }
    if (turn === undefined && late !== undefined) await writeWithoutRight(options, late);
    drop(id);
  }

  async function replayAll(): Promise<void> {
    let pauseMs = AGAIN_MS;
    try {
      const stored = table.all().map(({ id, text }) => ({ id, late: parse(text) }));
      const hasFailed = await moveEach(stored, move, log);
      // These answers could not be stored in the database, so they are only in memory.
      const others = Array.from(waiting.keys(), (id) => ({ id }));
      const isFailing = (await moveEach(others, move, log)) || hasFailed;
      if (isFailing && waiting.size === 0) pauseMs = AGAIN_AFTER_FAILURE_MS;
    } catch {
      // The store is still unavailable. The timer below retries.
    }
    // Another answer may have arrived during the replay.
    if (!isEmpty()) replayIn(pauseMs);
  }

  const isEmpty = () => !database.isOpen || (table.count() === 0 && waiting.size === 0);

  function replayIn(pauseMs: number): void {
    clearTimeout(timer);
    timer = setTimeout(() => void replay(), pauseMs).unref();
  }

  /** Starts to replay, or joins the replay that is already running. */
  function replay(): Promise<void> {
    if (isEmpty()) return Promise.resolve();
    replaying ??= replayAll().finally(() => (replaying = undefined));
    return replaying;
  }

  void replay();

  /**
   * Waits until the loop has written the answer. If `isPatient`, waits without a time limit until the signal aborts.
   */
  async function wait(
    late: LateWrite,
    write: Waiting["write"],
    isPatient: boolean,
    signal: AbortSignal,
  ): Promise<void> {
    const { id } = late.record;
    const turn = { write, stored: Promise.withResolvers<void>() };
    const { promise } = turn.stored;
    waiting.set(id, turn);
    replayIn(AGAIN_MS);
    if (isPatient && !signal.aborted) await untilAborted(promise, signal).catch(() => {});
    else await waitAtMost(promise, signal.aborted ? LAST_MS : PATIENCE_MS);
    if (waiting.get(id) === turn) waiting.delete(id);
  }

  return {
    async store({ history, right, log }, late, signal) {
      const { id } = late.record;
      const write = () => append(history, late);
      try {
        await write();
        return drop(id);
      } catch (err) {
        log.error({ err, turnId: id }, "an answer could not be stored in the history");
        if (err instanceof FencedError) return;
        const isAway = isStoreOutage(err);
        // An answer that follows no entry cannot be added to the history later.
        if (isAway && late.after !== undefined) keepOnDisk(late);
        await wait(late, write, isAway && canBeTakenOver(right), signal);
      }
    },
    count: () => (database.isOpen ? table.count() : 0),
    replay,
  };
}

async function append(history: History, { asked = [], entry, aliases, after, record }: LateWrite): Promise<void> {
  const { conversationId } = record;
  for (const { entry, after, news } of asked) await history.append(conversationId, entry, [], after, news);
  await history.append(conversationId, entry, aliases, after);
}

async function writeWithoutRight(
  { history, records, log }: LateWritesOptions,
  { record, attempts = Infinity, asked = [], ...answer }: LateWrite,
): Promise<void> {
  const { id, conversationId } = record;
  // If the turn has no record, its asker may have been erased, so the questions are not stored.
  const missing = asked.length > 0 && (await records.load(id)) !== undefined ? asked : [];
  if (!(await history.appendLate(conversationId, answer, missing))) {
    log.warn({ turnId: id }, "an answer was not added to the history, because its question is missing there");
    return;
  }
  // If a newer attempt has stored its record, that record stays.
  const stored = await records.load(id);
  if (stored?.phase !== "final" && (stored?.attempts ?? 0) <= attempts) await records.save(record);
}

interface Row {
  id: string;
  late?: LateWrite | undefined;
}

/** Moves answers one by one. Rejects during an outage. Resolves to true if any other failure stopped an answer. */
async function moveEach(rows: readonly Row[], move: (row: Row) => Promise<void>, log: Logger): Promise<boolean> {
  let hasFailed = false;
  for (const row of rows) {
    try {
      await move(row);
    } catch (err) {
      if (isStoreOutage(err)) throw err;
      hasFailed = true;
      log.warn({ err, turnId: row.id }, "an answer could not be added to the history; retrying");
    }
  }
  return hasFailed;
}

function openTable(database: DatabaseSync) {
  database.exec(
    "CREATE TABLE IF NOT EXISTS unkept_answer (seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, answer TEXT NOT NULL) STRICT",
  );
  const upsert = database.prepare(
    "INSERT INTO unkept_answer (id, answer) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET answer = excluded.answer",
  );
  const remove = database.prepare("DELETE FROM unkept_answer WHERE id = ?");
  const select = database.prepare("SELECT id, answer FROM unkept_answer ORDER BY seq");
  const count = database.prepare("SELECT COUNT(*) AS count, TOTAL(LENGTH(answer)) AS chars FROM unkept_answer");
  const removeOldest = database.prepare(
    "DELETE FROM unkept_answer WHERE seq = (SELECT MIN(seq) FROM unkept_answer) RETURNING id",
  );

  return {
    /**
     * Stores an answer. If all pending answers together are too long, drops the oldest ones and returns their turns.
     */
    add(id: string, answer: LateWrite, maxChars: number): string[] {
      upsert.run(id, JSON.stringify(answer));
      const dropped: string[] = [];
      while (Number(count.get()?.["chars"]) > maxChars) dropped.push(String(removeOldest.get()?.["id"]));
      return dropped;
    },
    remove: (id: string) => void remove.run(id),
    count: () => Number(count.get()?.["count"]),
    all: () => select.all().map(({ id, answer }) => ({ id: String(id), text: String(answer) })),
  };
}
