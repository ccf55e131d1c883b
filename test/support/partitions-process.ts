/**
 * A process that shares the partitions of a Redis with other processes: `node partitions-process.ts URL NAME`. Each
 * line that it prints is JSON. It writes all the time in some of its partitions, and in each running lane, always with
 * its right. Lines on its input are commands: "run LANE", "end LANE". After SIGTERM it leaves.
 */
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { pino } from "pino";
import { type Fence, FencedError, NO_RIGHT, withFence } from "../../src/port/right.ts";
import { PART_KEYS, partitionOf } from "../../src/queue/partition.ts";
import { createPartitions } from "../../src/queue/partitions.ts";
import { evalFenced } from "../../src/store/fenced-script.ts";
import { connectToRedis } from "../../src/store/redis-connection.ts";

const WRITE_MS = 50;
/** The process writes in every eighth partition. */
const EVERY = 8;

const [, , redisUrl = "", by = ""] = process.argv;
const log = pino({ level: "silent" });
const connection = connectToRedis(redisUrl, log);
const lanes = new Map<string, Fence>();

const partitions = createPartitions({
  connection,
  places: 16,
  log,
  onTaken(partition) {
    say({ taken: partition });
    const right = partitions.rightOf(partition, "");
    if (right !== undefined && partition % EVERY === 0) void write(`trial:${partition}`, right, () => true);
  },
  onGiving(partition) {
    say({ given: partition });
    return [...lanes.keys()].filter((lane) => partitionOf(lane) === partition);
  },
  onLost(partition) {
    say({ lost: partition });
    for (const lane of lanes.keys()) if (partitionOf(lane) === partition) lanes.delete(lane);
  },
  onKeptLost(lane) {
    lanes.delete(lane);
    say({ keptLost: lane });
  },
  onFreed: (lane) => say({ freed: lane }),
  running: (only) => [...lanes.keys()].filter((lane) => only === undefined || partitionOf(lane) === only).length,
});

function say(line: object): void {
  process.stdout.write(`${JSON.stringify({ by, ...line })}\n`);
}

/** Adds the right's value to a list repeatedly, until a write is refused. */
async function write(list: string, right: Fence, goesOn: () => boolean): Promise<void> {
  const push = () =>
    evalFenced(
      connection.client,
      "return redis.call('RPUSH', KEYS[1], ARGV[1])",
      [list],
      [right.value],
      withFence(NO_RIGHT, right),
    );
  for (let count = 0; goesOn(); await sleep(WRITE_MS)) {
    try {
      await connection.run(push);
      if (++count === 3) say({ wrote: list });
    } catch (error) {
      if (!(error instanceof FencedError)) continue;
      return say({ refused: list, isOwner: partitions.owned().includes(Number(list.split(":")[1])) });
    }
  }
}

async function obey(command = "", given = ""): Promise<void> {
  const right = partitions.rightOf(partitionOf(given), given) ?? lanes.get(given);
  if (command === "block") Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Number(given));
  if (command === "run" && right !== undefined) {
    lanes.set(given, right);
    void write(`trial:${given}`, right, () => lanes.has(given));
  }
  if (command === "end" && right !== undefined) {
    const settle = "redis.call('DEL', KEYS[1]) redis.call('PUBLISH', KEYS[2], ARGV[1])";
    const keys = [PART_KEYS.kept(given), PART_KEYS.freed];
    const held = withFence(NO_RIGHT, right);
    await connection.run(() => evalFenced(connection.client, settle, keys, [given], held));
    partitions.forgetKept(given);
    lanes.delete(given);
  }
}

createInterface({ input: process.stdin }).on("line", (line) => void obey(...(line.split(" ") as [string, string])));
process.on("SIGTERM", () => void partitions.leave().then(() => say({ left: true })));
await partitions.start();
say({ ready: true });
