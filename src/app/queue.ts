import type { InboundEvent } from "../port/events.ts";
import { NO_RIGHT } from "../port/right.ts";
import { createEventQueue } from "../queue/event-queue.ts";
import type { Journal } from "../queue/journal.ts";
import type { Queue } from "../queue/queue.ts";
import { createRedisJournal } from "../queue/redis-journal.ts";
import { createSqliteJournal } from "../queue/sqlite-journal.ts";
import type { Base } from "../services/services.ts";
import type { RedisConnection } from "../store/redis-connection.ts";
import { createCallHistory } from "./call-history.ts";

/** Pauses before failed work is retried. */
export type RetryPauses = readonly [first: number, longest: number];

/** Processes that share a Redis also share the work, except for a platform that runs in only one process. */
export function createQueue(base: Base, retryMs: RetryPauses | undefined): Queue {
  const { database, stores, limits, adapterOf, metrics, log } = base;
  const own = createSqliteJournal({ database, log });
  const isOwn = ({ reply }: InboundEvent) => adapterOf(reply.platform).isOwn === true;
  const shared = stores.shared && openShared(base, stores.shared);
  return createEventQueue({
    journals: { own, shared, isOwn },
    maxActive: limits.maxConcurrentTurns,
    retryMs,
    onTakenOver: metrics.takenOver,
    log,
  });
}

function openShared({ stores, limits, adapterOf, scheduler, log }: Base, connection: RedisConnection): Journal {
  // Opens the sink only to read the name of its rate limit.
  const budgetOf = ({ reply }: InboundEvent) => adapterOf(reply.platform).sink(reply, NO_RIGHT).budget.key;
  const calls = createCallHistory({ scheduler, budgetOf, now: stores.now, log });
  return createRedisJournal({ connection, places: limits.maxConcurrentTurns, calls, log });
}
