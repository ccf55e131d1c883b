import { createHash, randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { createKeyedQueue } from "../concurrency/keyed-queue.ts";
import { checkRight, type Fence, FencedError, type Right, withFence } from "../port/right.ts";
import { StoreError } from "./outage.ts";
import type { RedisConnection } from "./redis-connection.ts";
import { evalScript } from "./redis-script.ts";

/** Longer than any task. If a process dies during its turn, other processes wait this long. */
const TURN_MS = 10_000;
const WAIT_MS = 2 * TURN_MS;
const LOOK_MS = 10;
/** A finished turn leaves this value for longer than a turn lasts, so that a turn without a lock notices the other. */
const TRACE = "-";
const TRACE_MS = 2 * TURN_MS;

const TAKE = `
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= '${TRACE}' then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ${TURN_MS})
return 1`;
const RELEASE = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], '${TRACE}', 'PX', ${TRACE_MS})
return 1`;

/** Runs a task after other tasks with the same name. The task must write under the right that it gets. */
export type RunInTurn = <T>(right: Right, name: string, task: (held: Right) => Promise<T>) => Promise<T>;

/**
 * Turns that processes share.
 *
 * Each turn has a fence: a process that was suspended past the end of its turn can no longer write, and its task
 * rejects with an outage error. A call also rejects if it gets no turn in time.
 *
 * A process whose right covers the key starts without a lock, because no other process has that right. If another
 * process held the lock in the meantime, Redis rejects the writes, and the task runs again with a lock. So each task
 * can run twice.
 */
export function createSharedTurns(connection: RedisConnection, place: string): RunInTurn {
  const { client, run } = connection;
  const { run: inTurn } = createKeyedQueue();
  const evaluate = (script: string, key: string, value: string) =>
    run(() => evalScript(client, script, () => ({ keys: [key], arguments: [value] })));

  async function begin(key: string): Promise<Fence> {
    const value = randomUUID();
    const until = performance.now() + WAIT_MS;
    while ((await evaluate(TAKE, key, value)) !== 1) {
      if (performance.now() > until) throw new StoreError("Another process has blocked a conversation for too long.");
      await sleep(LOOK_MS * (0.5 + Math.random()));
    }
    return { key, value, check };
  }

  async function runLocked<T>(right: Right, key: string, task: (held: Right) => Promise<T>): Promise<T> {
    const fence = await begin(key);
    try {
      return await task(withFence(right, fence));
    } catch (error) {
      if (!(error instanceof FencedError)) throw error;
      // Either another process now owns all of this work, or only this turn was too slow. In the second case, a new
      // turn starts.
      await checkRight(right);
      throw new StoreError("The work took longer than its turn.", { cause: error });
    } finally {
      // If a turn cannot be released, it expires.
      await evaluate(RELEASE, key, fence.value).catch(() => {});
    }
  }

  async function runCovered<T>(right: Right, fence: Fence, key: string, task: (held: Right) => Promise<T>): Promise<T> {
    const from = performance.now();
    // This copy of the fence keeps the key's current name. After a rename the right no longer covers the key, so writes
    // must fail.
    const covering: Fence = { key: fence.key, value: fence.value, check };
    const unlocked: Fence = {
      key,
      get value() {
        return performance.now() - from < TURN_MS ? "" : "too late";
      },
      check,
    };
    try {
      return await task(withFence(withFence(right, covering), unlocked));
    } catch (error) {
      if (!(error instanceof FencedError)) throw error;
      await checkRight(right);
      return runLocked(right, key, task);
    }
  }

  return (right, name, task) =>
    inTurn(name, async () => {
      const fence = right.fences.find((one) => one.covers?.(name));
      // The name is hashed, because it can contain a person's id and the trace outlives the erasure of that person.
      const key = place + createHash("sha256").update(name).digest("base64url");
      return fence === undefined ? runLocked(right, key, task) : runCovered(right, fence, key, task);
    });
}

/** Checks nothing, because a turn writes only to the store, which checks the fence itself. */
async function check(): Promise<void> {}
