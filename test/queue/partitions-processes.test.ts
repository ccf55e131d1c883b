import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { isRedisMissing, type RedisServer, startRedis } from "../../lab/support/redis.ts";
import { PROCESS_ENV } from "../../lab/support/service.ts";
import { PART_KEYS, PARTITIONS, partitionOf } from "../../src/queue/partition.ts";
import type { RedisConnection } from "../../src/store/redis-connection.ts";
import { eventually } from "../support/eventually.ts";
import { connectWell } from "../support/shared-redis.ts";

type Line = Record<string, unknown>;
const AWAY_MS = 5_000;
/** Each process writes in every eighth partition that it owns. */
const WRITES_EVERY = 8;

interface Member {
  name: string;
  child: ChildProcess;
  order(command: string): void;
}

describe.skipIf(isRedisMissing)("processes that share partitions (needs redis-server)", () => {
  let redis: RedisServer;
  let connection: RedisConnection;
  /** The tests share their processes, because processes start slowly. */
  const members = new Map<string, Member>();
  const lines: Line[] = [];
  /** Earlier tests printed the lines before this one. */
  let since = 0;
  let started = 0;

  beforeAll(async () => {
    redis = await startRedis({ isKept: true });
    connection = await connectWell(redis.url);
  });
  afterAll(async () => {
    for (const member of members.values()) remove(member);
    await connection.close();
    await redis.stop();
  });

  const said = (word: string, by?: string) =>
    lines.slice(since).filter((line) => word in line && (by ?? line["by"]) === line["by"]);
  const client = () => connection.client;

  async function startProcess(): Promise<Member> {
    const name = `process ${(started += 1)}`;
    const child = spawn(process.execPath, ["test/support/partitions-process.ts", redis.url, name], {
      env: PROCESS_ENV,
      stdio: ["pipe", "pipe", "inherit"],
    });
    const member = { name, child, order: (command: string) => void child.stdin.write(`${command}\n`) };
    members.set(name, member);
    createInterface({ input: child.stdout }).on("line", (line) => lines.push(JSON.parse(line) as Line));
    await eventually(() => lines.some((line) => "ready" in line && line["by"] === name)).toBe(true);
    return member;
  }

  function remove({ name, child }: Member): void {
    members.delete(name);
    child.kill("SIGKILL");
  }

  /** Lets a process leave, so that its partitions become free. */
  async function dismiss(member: Member): Promise<void> {
    member.child.kill("SIGTERM");
    await eventually(() => said("left", member.name).length).toBe(1);
    remove(member);
  }

  /** Returns three processes that divide the partitions. Starts new ones for those that earlier tests ended. */
  async function startThree(): Promise<[Member, Member, Member]> {
    for (const member of [...members.values()].slice(3)) await dismiss(member);
    await Promise.all(Array.from({ length: 3 - members.size }, startProcess));
    await eventually(readSizes).toEqual([20, 22, 22]);
    since = lines.length;
    return [...members.values()] as [Member, Member, Member];
  }

  /** The partitions that a process itself reports. */
  function ownedBy({ name }: Member): Set<number> {
    const owned = new Set<number>();
    for (const { by, taken, given, lost } of lines) {
      if (by !== name) continue;
      if (taken !== undefined) owned.add(Number(taken));
      owned.delete(Number(given ?? lost));
    }
    return owned;
  }

  /** The values of all owners, in the order of their partitions. */
  const readOwners = () => client().mGet(Array.from({ length: PARTITIONS }, (_, index) => PART_KEYS.owner(index)));

  /** The number of partitions that each living process owns, sorted. Ignores partitions without an owner. */
  async function readSizes(): Promise<number[]> {
    const members = await client().hKeys(PART_KEYS.members);
    const owners = await readOwners();
    const sizes = members.map((member) => owners.filter((owner) => owner?.split(":")[1] === member).length);
    return sizes.filter((size) => size > 0).toSorted((one, other) => one - other);
  }

  /** Writes that came after a later owner's write. */
  async function findStaleWrites(): Promise<string[]> {
    const stale: string[] = [];
    for await (const keys of client().scanIterator({ MATCH: "trial:*" })) {
      for (const key of keys) {
        const epochs = (await client().lRange(key, 0, -1)).map((value) => Number.parseInt(value, 10));
        if (epochs.some((epoch, index) => epoch < (epochs[index - 1] ?? 0))) stale.push(key);
      }
    }
    return stale;
  }

  const findRefusedOwners = () => said("refused").filter(({ isOwner }) => isOwner === true);

  /** Starts a lane in a partition that this process owns. */
  async function runLane(member: Member): Promise<string> {
    const owned = ownedBy(member);
    const ids = Array.from({ length: 1_000 }, (_, index) => `test:${member.name.slice(-1)}${since}-${index}`);
    const lane = ids.find((id) => owned.has(partitionOf(id)));
    if (lane === undefined) throw new Error("The process owns nothing.");
    member.order(`run ${lane}`);
    await eventually(() => said("wrote", member.name).map(({ wrote }) => wrote)).toContain(`trial:${lane}`);
    return lane;
  }

  test("processes own an even share of the partitions, and every partition has one owner", async () => {
    await startThree();
    expect(new Set(await readOwners())).not.toContain(null);
    expect(await findStaleWrites()).toEqual([]);
  });

  test("the others take over the partitions of a killed process", async () => {
    const [first] = await startThree();
    remove(first);
    await eventually(readSizes).toEqual([32, 32]);
    expect(findRefusedOwners()).toEqual([]);
    expect(await findStaleWrites()).toEqual([]);
  });

  test("the others take over the partitions of a leaving process, which finishes its running lanes under marks", async () => {
    const [first] = await startThree();
    const lane = await runLane(first);
    first.child.kill("SIGTERM");
    await eventually(() => said("left", first.name).length).toBe(1);
    await eventually(readSizes).toEqual([32, 32]);
    const mark = await client().get(PART_KEYS.kept(lane));
    const before = await client().lLen(`trial:${lane}`);
    // Longer than a mark lasts after its process has died.
    await sleep(4_000);
    expect(await client().get(PART_KEYS.kept(lane))).toBe(mark);
    expect(await client().lLen(`trial:${lane}`)).toBeGreaterThan(before);
    first.order(`end ${lane}`);
    await eventually(() => new Set(said("freed").map(({ by }) => by)).size).toBe(3);
    expect(await client().exists(PART_KEYS.kept(lane))).toBe(0);
    expect(said("keptLost")).toEqual([]);
    expect(said("refused").filter(({ refused }) => refused === `trial:${lane}`)).toEqual([]);
    remove(first);
  });

  test("processes give partitions to one that joins, and no write of an owner is refused", async () => {
    await startThree();
    await startProcess();
    await eventually(readSizes).toEqual([16, 16, 16, 16]);
    expect(said("lost")).toEqual([]);
    expect(findRefusedOwners()).toEqual([]);
    expect(await findStaleWrites()).toEqual([]);
  });

  test("the others take over from a stopped process, whose late writes are refused", async () => {
    const all = await startThree();
    const writer = all.find((one) => [...ownedBy(one)].some((partition) => partition % WRITES_EVERY === 0)) ?? all[0];
    writer.child.kill("SIGSTOP");
    await eventually(readSizes).toEqual([32, 32]);
    writer.child.kill("SIGCONT");
    await eventually(() => said("lost", writer.name).length).toBeGreaterThan(0);
    await eventually(() => said("refused", writer.name).length).toBeGreaterThan(0);
    expect(await findStaleWrites()).toEqual([]);
    await eventually(readSizes).toEqual([20, 22, 22]);
  });

  test("processes own the same partitions after Redis was away for five seconds", async () => {
    const [first] = await startThree();
    const lane = await runLane(first);
    const owners = await readOwners();
    await redis.kill();
    await sleep(AWAY_MS);
    await redis.restart();
    await eventually(() => client().isReady).toBe(true);
    const writes = async () => client().lLen(`trial:${lane}`);
    const before = await writes();
    await eventually(writes).toBeGreaterThan(before);
    // After this time, the former owners no longer have precedence.
    await sleep(4_000);
    expect(await readOwners()).toEqual(owners);
    expect([...said("lost"), ...said("given")].filter(({ given }) => given === undefined)).toEqual([]);
    first.order(`end ${lane}`);
  });

  test("a process that was stopped and then exits keeps no partition", async () => {
    const [first] = await startThree();
    const lane = await runLane(first);
    first.child.kill("SIGSTOP");
    await eventually(readSizes).toEqual([32, 32]);
    first.child.kill("SIGTERM");
    first.child.kill("SIGCONT");
    await eventually(() => said("left", first.name).length).toBe(1);
    expect(await client().exists(PART_KEYS.kept(lane))).toBe(0);
    expect(await findStaleWrites()).toEqual([]);
    remove(first);
  });
});
