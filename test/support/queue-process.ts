/**
 * A process that works on the queue of a Redis, for tests that kill, stop or freeze it. Each line that it prints is
 * JSON. Its work lasts until the test ends it. A message's text decides what the work does meanwhile. "block <file>"
 * freezes the process named "first" until the file exists. "die" ends the process. "write" writes repeatedly. "write
 * until <file>" writes repeatedly until the file exists, and then the work is done.
 */
import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { pino } from "pino";
import { openRedisQueue } from "../../lab/support/redis-queue.ts";
import { NO_RIGHT, type Right, type Work } from "../../src/port/right.ts";
import { callPlatform } from "../../src/reply/platform-call.ts";
import { openDatabase } from "../../src/store/database.ts";
import { createStores } from "../../src/store/keyv.ts";
import { isStoreOutage } from "../../src/store/outage.ts";

const BLOCK_LOOK_MS = 50;
const WRITE_MS = 20;

const [, , redisUrl, ownName = ""] = process.argv;
const log = pino({ level: "silent" });
const stores = createStores({ redisUrl, database: openDatabase(":memory:"), log }, NO_RIGHT);
if (stores.shared === undefined) throw new Error("There is no Redis.");
const queue = openRedisQueue({
  connection: stores.shared,
  retryMs: [10, 20],
  cutMs: 4_000,
  onTakenOver: () => say({ takenOver: true }),
});

function say(line: object): void {
  process.stdout.write(
    `${JSON.stringify({ by: ownName, clock: performance.timeOrigin + performance.now(), ...line })}\n`,
  );
}

/** Writes like a streaming answer: a call to a platform, and a note of the progress. No outage stops it. */
async function write(text: string, isDone: () => boolean, { signal, right }: Work): Promise<void> {
  const keyv = stores.under(right).open("trial");
  for (let count = 1; !signal.aborted && !isDone(); count++) {
    await callPlatform(right, async () => say({ call: text }));
    await keyv.set(text, { by: ownName, count }).catch((error: unknown) => {
      if (!isStoreOutage(error)) throw error;
    });
    await sleep(WRITE_MS);
  }
}

/**
 * Writes like a finished answer: retries until the write is stored or refused. Does not check the clock, because only
 * the store's decision counts.
 */
async function store(text: string, right: Right): Promise<void> {
  const keyv = stores.under(right).open("trial");
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

/** Blocks this whole process until the file exists. */
function standStill(file: string): void {
  while (!existsSync(file)) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, BLOCK_LOOK_MS);
}

queue.start({
  take: (waiting) => waiting.slice(0, 1),
  async work(events, work) {
    const { signal, right } = work;
    const [event] = events;
    const text = event?.kind === "message" ? event.text : "";
    say({ begun: text, isResumed: right.isResumed });
    signal.addEventListener("abort", () => say({ aborted: text, reason: String(signal.reason) }));
    if (text.startsWith("die")) process.exit(1);
    if (text.startsWith("quick")) return events;
    const [, file] = /^block (.+)/.exec(text) ?? [];
    if (file !== undefined && ownName === "first") standStill(file);
    const [, end] = /^write until (.+)/.exec(text) ?? [];
    try {
      await write(text, () => end !== undefined && existsSync(end), work);
    } catch (error) {
      say({ refused: text, error: error instanceof Error ? error.name : "" });
    }
    await store(text, right);
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
