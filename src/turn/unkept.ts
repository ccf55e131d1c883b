import type { DatabaseSync } from "node:sqlite";
import type { Logger } from "pino";
import { untilAborted } from "../concurrency/deadlines.ts";
import { withoutFence } from "../concurrency/fence.ts";
import type { Continuation, History } from "../history/history.ts";
import { isStoreOutage } from "../store/outage.ts";
import type { TurnRecord, TurnRecords } from "./record.ts";

/** Most characters of all answers together; one has a few thousand, more after large results of tools. */
const MAX_CHARS = 32 * 1024 * 1024;
const AGAIN_MS = 1_000;
/** The wait after a failure that is no outage, and so not likely to pass. */
const AGAIN_AFTER_FAILURE_MS = 60_000;

/** An answer with its place in the history, and the record of its turn as it ended. */
export interface UnkeptAnswer extends Continuation {
  record: TurnRecord;
  /** Beginnings of the turn when it ended. */
  attempts?: number;
  /** Its questions, where the history has not taken those either. */
  asked?: readonly Continuation[];
}

/** Answers that ended during an outage, kept in this process's own database until the history takes each once. */
export interface UnkeptAnswers {
  /** Keeps the answer; the oldest ones give way where there are too many. Never throws. */
  add(answer: UnkeptAnswer): void;
  /** The number of answers waiting here. */
  count(): number;
  /** The history has taken it in some other way. */
  drop(turnId: string): void;
  /** Brings all of them into the history, as far as it takes them. Never rejects. */
  replay(): Promise<void>;
  /** Resolves when the answer is no longer here, or when the signal aborts. */
  settled(turnId: string, signal: AbortSignal): Promise<void>;
}

export interface UnkeptAnswersOptions {
  /** Stays open: it belongs to the caller. */
  database: DatabaseSync;
  history: Pick<History, "appendLate">;
  records: Pick<TurnRecords, "load" | "save">;
  log: Logger;
  maxChars?: number;
}

/** Begins to replay what an earlier process left. */
export function createUnkeptAnswers(options: UnkeptAnswersOptions): UnkeptAnswers {
  const { database, history, records, log, maxChars = MAX_CHARS } = options;
  const table = openTable(database);
  const waiting = new Map<string, PromiseWithResolvers<void>>();
  let replaying: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;

  function drop(turnId: string): void {
    table.remove(turnId);
    leave(turnId);
  }

  function leave(turnId: string): void {
    waiting.get(turnId)?.resolve();
    waiting.delete(turnId);
  }

  async function restore({ record, attempts = Infinity, asked = [], ...answer }: UnkeptAnswer): Promise<void> {
    const { id, conversationId } = record;
    // A record is erased with everything else of its person.
    const missing = asked.length > 0 && (await records.load(id)) !== undefined ? asked : [];
    if (!(await history.appendLate(conversationId, answer, missing))) {
      log.warn({ turnId: id }, "an answer is not put into the history any more: what it answers is not there");
      return;
    }
    // Another process may have begun to answer once more, or have done it: its words are the ones that stand there.
    const stored = await records.load(id);
    if (stored?.phase !== "final" && (stored?.attempts ?? 0) <= attempts) await records.save(record);
  }

  async function replayAll(): Promise<void> {
    try {
      for (const { id, answer } of table.all()) {
        await restore(answer);
        drop(id);
      }
    } catch (err) {
      if (!isStoreOutage(err)) log.warn({ err }, "answers could not be put into the history; this is tried again");
      replayIn(isStoreOutage(err) ? AGAIN_MS : AGAIN_AFTER_FAILURE_MS);
    }
  }

  function replayIn(pauseMs: number): void {
    clearTimeout(timer);
    timer = setTimeout(() => void replay(), pauseMs).unref();
  }

  /** One replay at a time serves all; it runs under no fence, since the asker's may fall meanwhile. */
  function replay(): Promise<void> {
    if (!database.isOpen || table.count() === 0) return Promise.resolve();
    replaying ??= withoutFence(replayAll).finally(() => (replaying = undefined));
    return replaying;
  }

  void replay();

  return {
    add(answer) {
      const { id } = answer.record;
      try {
        const dropped = table.add(id, answer, maxChars);
        if (dropped.length > 0) {
          log.error({ turnIds: dropped }, "the oldest answers that the history has not taken were dropped");
        }
        for (const turnId of dropped) leave(turnId);
        if (dropped.includes(id)) return;
      } catch (err) {
        log.error({ err, turnId: id }, "an answer that the history has not taken could not be kept on the disk");
        return;
      }
      if (!waiting.has(id)) waiting.set(id, Promise.withResolvers());
      replayIn(AGAIN_MS);
    },
    count: () => (database.isOpen ? table.count() : 0),
    drop,
    replay,
    async settled(turnId, signal) {
      await untilAborted(waiting.get(turnId)?.promise ?? Promise.resolve(), signal).catch(() => {});
    },
  };
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
    /** Returns the turns whose answers gave way. */
    add(id: string, answer: UnkeptAnswer, maxChars: number): string[] {
      upsert.run(id, JSON.stringify(answer));
      const dropped: string[] = [];
      while (Number(count.get()?.["chars"]) > maxChars) dropped.push(String(removeOldest.get()?.["id"]));
      return dropped;
    },
    remove: (id: string) => void remove.run(id),
    count: () => Number(count.get()?.["count"]),
    all: () =>
      select.all().map(({ id, answer }) => ({ id: String(id), answer: JSON.parse(String(answer)) as UnkeptAnswer })),
  };
}
