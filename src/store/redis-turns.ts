import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { checkFences, type Fence, FencedError, withFence } from "../concurrency/fence.ts";
import { createKeyedQueue, type KeyedQueue } from "../concurrency/keyed-queue.ts";
import { StoreError } from "./outage.ts";
import type { RedisConnection } from "./redis-connection.ts";

/** Longer than any task in a turn takes. A process that dies with a turn holds up the others for this long. */
const TURN_MS = 10_000;
const WAIT_MS = 2 * TURN_MS;
const LOOK_MS = 10;

const RELEASE = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

/**
 * Turns shared by processes, each fenced: a process that stood still past its turn writes nothing more, and is told of
 * an outage, to try again. Rejects when no turn comes.
 */
export function createSharedTurns(connection: RedisConnection, place: string): KeyedQueue["run"] {
  const { client, run } = connection;
  const { run: inTurn } = createKeyedQueue();

  async function begin(key: string): Promise<Fence> {
    const value = randomUUID();
    const until = performance.now() + WAIT_MS;
    for (;;) {
      const options = { condition: "NX", expiration: { type: "PX", value: TURN_MS } } as const;
      if ((await run(() => client.set(key, value, options))) !== null) return { key, value, check };
      if (performance.now() > until) throw new StoreError("Another process has held up a conversation for too long.");
      await sleep(LOOK_MS * (0.5 + Math.random()));
    }
  }

  return (key, task) =>
    inTurn(key, async () => {
      const fence = await begin(place + key);
      try {
        return await withFence(fence, task);
      } catch (error) {
        if (!(error instanceof FencedError)) throw error;
        // Either all of this is another's by now, or the turn alone took too long: then there is another one.
        await checkFences();
        throw new StoreError("What is done in turn took longer than its turn.", { cause: error });
      } finally {
        // A turn that cannot be given back expires.
        await run(() => client.eval(RELEASE, { keys: [fence.key], arguments: [fence.value] })).catch(() => {});
      }
    });
}

/** Only the store is written to in a turn, and looks at the fence itself. */
async function check(): Promise<void> {}
