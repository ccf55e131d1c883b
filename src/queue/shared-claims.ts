import { randomUUID } from "node:crypto";
import type { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { runWithin } from "../concurrency/deadlines.ts";
import type { Marks } from "../store/redis.ts";
import type { Queue } from "./queue.ts";

/** Longer than an event is taken over for; then another process may have it. */
const PENDING_MS = 10_000;
/** As long as claims are kept on disk. */
const KEPT_MS = 48 * 3_600_000;
/** Platforms wait three seconds for an event to be taken over, and the disk needs its time too. */
const ANSWER_MS = 800;
const UNDECIDED_MS = 1_000;
const LOOK_MS = 50;

export interface SharedClaimsOptions {
  database: DatabaseSync;
  marks: Marks;
  log: Logger;
}

/**
 * A queue whose claims hold among all processes that share the marks. Where these do not answer, its own claims
 * decide alone: an event is rather taken twice than lost.
 */
export function withSharedClaims(queue: Queue, { database, marks, log }: SharedClaimsOptions): Queue {
  const owner = readOwner(database);
  const pending = `pending:${owner}`;
  const bound = <T>(task: () => Promise<T>) => runWithin(ANSWER_MS, task, new AbortController().signal);

  /** Resolves to true when another process has the event. Rejects while another one is taking it. */
  async function isTakenElsewhere(key: string): Promise<boolean> {
    const until = performance.now() + UNDECIDED_MS;
    for (;;) {
      const mark = await bound(() => marks.claim(key, pending, PENDING_MS));
      if (mark.endsWith(`:${owner}`)) return false;
      if (!mark.startsWith("pending:")) return true;
      if (performance.now() > until) throw new UndecidedError("Another process has not yet taken this event over.");
      await sleep(LOOK_MS);
    }
  }

  async function askOthers(key: string): Promise<boolean> {
    try {
      return await isTakenElsewhere(key);
    } catch (error) {
      if (error instanceof UndecidedError) throw error;
      log.warn({ err: error, key }, "whether another process has this event is not known; it is taken here");
      return false;
    }
  }

  return {
    ...queue,
    async accept(event) {
      if (await askOthers(event.key)) return false;
      const isNew = await queue.accept(event);
      try {
        await bound(() => marks.set(event.key, `kept:${owner}`, KEPT_MS));
      } catch (error) {
        log.warn({ err: error, key: event.key }, "other processes could not be told that this event is taken");
      }
      return isNew;
    },
  };
}

class UndecidedError extends Error {
  override readonly name = "UndecidedError";
}

/** Names the queue in this database, the same after a restart. */
function readOwner(database: DatabaseSync): string {
  database.exec("CREATE TABLE IF NOT EXISTS queue_owner (only INTEGER PRIMARY KEY CHECK (only = 1), id TEXT NOT NULL)");
  database.prepare("INSERT OR IGNORE INTO queue_owner (only, id) VALUES (1, ?)").run(randomUUID());
  return String(database.prepare("SELECT id FROM queue_owner").get()?.["id"]);
}
