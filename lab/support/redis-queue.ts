import { DatabaseSync } from "node:sqlite";
import { createEventQueue } from "../../src/queue/event-queue.ts";
import type { Queue, QueueOptions } from "../../src/queue/queue.ts";
import { type CallHistory, createRedisJournal } from "../../src/queue/redis-journal.ts";
import { createSqliteJournal } from "../../src/queue/sqlite-journal.ts";
import type { RedisConnection } from "../../src/store/redis-connection.ts";
import { silent } from "./log.ts";

export interface RedisQueueOptions extends Partial<QueueOptions> {
  connection: RedisConnection;
  onTakenOver?(): void;
  calls?: CallHistory;
}

/** Opens a process's queue, which shares its work with other processes through Redis. */
export function openRedisQueue({
  connection,
  maxActive = 16,
  log = silent,
  calls,
  ...options
}: RedisQueueOptions): Queue {
  const own = createSqliteJournal({ database: new DatabaseSync(":memory:"), log });
  const shared = createRedisJournal({ connection, places: maxActive, calls, log });
  return createEventQueue({ journals: { own, shared }, maxActive, retryMs: [1, 4], cutMs: 5, log, ...options });
}
