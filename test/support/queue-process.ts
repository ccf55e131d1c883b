/**
 * A process that works on the queue of a Redis, for tests that kill it, stop it and let it stand still. Each line it
 * prints is JSON. Its work lasts until the test says otherwise; what a message says decides what it does meanwhile:
 * "block <file>" lets the process named "first" stand still until there is that file, "die" ends the process, "write"
 * writes ever again, and "write until <file>" does that until there is that file and has then done its work.
 */
import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { pino } from "pino";
import { isTakenUp } from "../../src/concurrency/fence.ts";
import { createRedisQueue } from "../../src/queue/redis/redis-queue.ts";
import { callPlatform } from "../../src/reply/platform-call.ts";
import { openDatabase } from "../../src/store/database.ts";
import { createStores } from "../../src/store/keyv.ts";
import { isStoreOutage } from "../../src/store/outage.ts";

const BLOCK_LOOK_MS = 50;
const WRITE_MS = 20;

const [, , redisUrl, ownName = ""] = process.argv;
const log = pino({ level: "silent" });
const stores = createStores({ redisUrl, database: openDatabase(":memory:"), log });
if (stores.shared === undefined) throw new Error("There is no Redis.");
const queue = createRedisQueue({
  connection: stores.shared,
  maxActive: 16,
  now: stores.now,
  log,
  retryMs: [10, 20],
  budgetOf: ({ reply }) => reply.channelId,
  onTakenOver: () => say({ takenOver: true }),
});
const keyv = stores.open("trial");

function say(line: object): void {
  process.stdout.write(
    `${JSON.stringify({ by: ownName, clock: performance.timeOrigin + performance.now(), ...line })}\n`,
  );
}

/** As an answer that streams does: a call to a platform, and a note of how far it has come, which no outage stops. */
async function write(text: string, isDone: () => boolean, signal: AbortSignal): Promise<void> {
  for (let count = 1; !signal.aborted && !isDone(); count++) {
    await callPlatform(async () => say({ call: text }));
    await keyv.set(text, { by: ownName, count }).catch((error: unknown) => {
      if (!isStoreOutage(error)) throw error;
    });
    await sleep(WRITE_MS);
  }
}

/**
 * As an answer that has ended: once more until it is stored, or refused. Without a look at the clock: what the store itself
 * takes is what counts.
 */
async function store(text: string): Promise<void> {
  for (;;) {
    try {
      await keyv.set(text, { by: ownName, count: -1 });
      return say({ stored: text });
    } catch (error) {
      if (!isStoreOutage(error)) return say({ fenced: text });
      await sleep(WRITE_MS);
    }
  }
}

/** Until there is this file, with everything else in this process. */
function standStill(file: string): void {
  while (!existsSync(file)) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, BLOCK_LOOK_MS);
}

queue.start({
  take: (waiting) => waiting.slice(0, 1),
  async work(events, signal) {
    const [event] = events;
    const text = event?.kind === "message" ? event.text : "";
    say({ begun: text, isTakenUp: isTakenUp() });
    signal.addEventListener("abort", () => say({ aborted: text, reason: String(signal.reason) }));
    if (text.startsWith("die")) process.exit(1);
    if (text.startsWith("quick")) return events;
    const [, file] = /^block (.+)/.exec(text) ?? [];
    if (file !== undefined && ownName === "first") standStill(file);
    const [, end] = /^write until (.+)/.exec(text) ?? [];
    try {
      await write(text, () => end !== undefined && existsSync(end), signal);
    } catch (error) {
      say({ refused: text, error: error instanceof Error ? error.name : "" });
    }
    await store(text);
    if (end !== undefined && !signal.aborted) return events;
    throw new Error(String(signal.reason));
  },
  async giveUp(events) {
    say({ givenUp: events.map((event) => (event.kind === "message" ? event.text : "")).join() });
    return events;
  },
  onAccepted: (event) => say({ noticed: event.key }),
});
process.on("SIGTERM", () => void queue.close(0).then(() => process.exit(0)));
say({ ready: true });
