import type { DatabaseSync } from "node:sqlite";
import type { Logger } from "pino";
import type { InboundEvent } from "../adapter.ts";
import type { Queue, Worker } from "./queue.ts";

/** A claim outlives its event, so that a delivery repeated a day later is still recognised. */
const CLAIM_TTL_MS = 48 * 3_600_000;
const SWEEP_INTERVAL_MS = 3_600_000;
/** Work that fails this often in a row is given up, so that one event cannot hold up its conversation for good. */
const MAX_FAILURES = 10;

export interface EmbeddedQueueOptions {
  database: DatabaseSync;
  /** Conversations worked on side by side. */
  maxActive: number;
  log: Logger;
  /** Pause before failed work is tried again: doubles from the first to the second. */
  retryMs?: readonly [first: number, longest: number];
}

interface Lane {
  conversationId: string;
  waiting: InboundEvent[];
  /** Being worked on, ready to be, or pausing after a failure. */
  state: "idle" | "ready" | "active" | "pausing";
  failures: number;
}

/**
 * The queue of one process. Events live in the table `queue_event` from `accept` until their work is
 * done; a row without its event is a claim. What runs when is kept in memory and rebuilt by `start`.
 */
export function createEmbeddedQueue({
  database,
  maxActive,
  log,
  retryMs = [1_000, 30_000],
}: EmbeddedQueueOptions): Queue {
  const rows = openRows(database);
  const lanes = new Map<string, Lane>();
  const ready: Lane[] = [];
  const running = new Set<Promise<void>>();
  const abort = new AbortController();
  let worker: Worker | undefined;
  let closing = false;

  const sweep = setInterval(() => rows.sweep(Date.now() - CLAIM_TTL_MS), SWEEP_INTERVAL_MS).unref();
  rows.sweep(Date.now() - CLAIM_TTL_MS);
  for (const event of rows.waiting()) enqueue(event);

  function enqueue(event: InboundEvent): void {
    const lane = lanes.get(event.conversationId) ?? {
      conversationId: event.conversationId,
      waiting: [],
      state: "idle" as const,
      failures: 0,
    };
    lanes.set(event.conversationId, lane);
    lane.waiting.push(event);
    if (lane.state === "idle") makeReady(lane);
  }

  function makeReady(lane: Lane): void {
    lane.state = "ready";
    ready.push(lane);
  }

  function dispatch(): void {
    while (worker !== undefined && !closing && running.size < maxActive) {
      const lane = ready.shift();
      if (lane === undefined) return;
      if (lane.waiting.length === 0) {
        // Everything that waited here was erased.
        lanes.delete(lane.conversationId);
        continue;
      }
      lane.state = "active";
      const work = run(lane, worker).finally(() => {
        running.delete(work);
        dispatch();
      });
      running.add(work);
    }
  }

  async function run(lane: Lane, { take, work }: Worker): Promise<void> {
    const events = take(lane.waiting);
    try {
      await work(events, abort.signal);
      finish(lane, events);
    } catch (error) {
      lane.failures += 1;
      const { conversationId, failures } = lane;
      if (failures >= MAX_FAILURES) {
        log.error({ err: error, conversationId, failures }, "work failed again and again and is given up");
        return finish(lane, events);
      }
      // The order within a conversation holds: what comes after waits for what failed.
      const pauseMs = Math.min(retryMs[0] * 2 ** (failures - 1), retryMs[1]);
      lane.state = "pausing";
      log.warn({ err: error, conversationId, failures, pauseMs }, "work failed and will be tried again");
      setTimeout(() => {
        makeReady(lane);
        dispatch();
      }, pauseMs).unref();
    }
  }

  function finish(lane: Lane, events: InboundEvent[]): void {
    rows.finish(events);
    const done = new Set(events);
    lane.waiting = lane.waiting.filter((event) => !done.has(event));
    lane.failures = 0;
    if (lane.waiting.length > 0) makeReady(lane);
    else lanes.delete(lane.conversationId);
  }

  return {
    // Asynchronous by contract: another queue stores over the network.
    async accept(event) {
      if (closing) throw new Error("This process is shutting down and accepts no more events.");
      if (!rows.claim(event)) return false;
      enqueue(event);
      worker?.notice(event);
      dispatch();
      return true;
    },
    start(newWorker) {
      worker = newWorker;
      dispatch();
    },
    depth() {
      let waiting = 0;
      for (const lane of lanes.values()) waiting += lane.waiting.length;
      return { waiting, active: running.size };
    },
    async forget(platform, authorId) {
      rows.forget(platform, authorId);
      for (const lane of lanes.values()) {
        // Work that runs keeps its own events; they are finished by it.
        if (lane.state === "active") continue;
        lane.waiting = lane.waiting.filter((event) => !isBy(event, platform, authorId));
      }
    },
    async close(graceMs) {
      closing = true;
      clearInterval(sweep);
      const grace = setTimeout(() => abort.abort("shutdown"), graceMs);
      await Promise.allSettled(running);
      clearTimeout(grace);
    },
  };
}

function isBy(event: InboundEvent, platform: string, authorId: string): boolean {
  return event.reply.platform === platform && event.author.id === authorId;
}

/** The table behind the queue. */
function openRows(database: DatabaseSync) {
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
  const clear = database.prepare("UPDATE queue_event SET event = NULL WHERE key IN (SELECT value FROM json_each(?))");
  const expire = database.prepare("DELETE FROM queue_event WHERE event IS NULL AND accepted_at < ?");
  // The claim stays, without the person: a delivery repeated after the erasure must not be answered.
  const erase = database.prepare("UPDATE queue_event SET event = NULL, author = '' WHERE platform = ? AND author = ?");

  return {
    /** False when the key had been claimed before. */
    claim(event: InboundEvent): boolean {
      const { key, author, reply } = event;
      return insert.run(key, reply.platform, author.id, JSON.stringify(event), Date.now()).changes === 1;
    },
    waiting: (): InboundEvent[] => select.all().map(({ event }) => JSON.parse(String(event)) as InboundEvent),
    finish: (events: InboundEvent[]) => clear.run(JSON.stringify(events.map(({ key }) => key))),
    sweep: (before: number) => expire.run(before),
    forget: (platform: string, author: string) => erase.run(platform, author),
  };
}
