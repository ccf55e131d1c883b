import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { z } from "zod";
import { createSingleRun } from "../concurrency/single-run.ts";
import { type Fence, FencedError } from "../port/right.ts";
import { StoreError } from "../store/outage.ts";
import { createListeningClient, type RedisClient, type RedisConnection } from "../store/redis-connection.ts";
import { evalScript } from "../store/redis-script.ts";
import {
  confirm,
  createKeptLanes,
  type Holding,
  KEEP_MS,
  type KeptLanes,
  laneIds,
  MARGIN_MS,
  type Mark,
} from "./kept-lanes.ts";
import { PART_KEYS, PARTITIONS, partitionOf } from "./partition.ts";
import { BEAT, GONE_MS, RELEASE } from "./partition-scripts.ts";
import { createReach, type Reach } from "./reach.ts";

const BEAT_MS = 500;
/** For this long after an outage, no process takes partitions from others, so that owners can send heartbeats first. */
const OWNERS_FIRST_MS = 2_500;
const AGAIN_MS = 50;
const WAKE_KEPT_MS = 10_000;

export interface PartitionsOptions {
  connection: RedisConnection;
  /** How many conversations this process handles at once. If 0, this process only accepts events. */
  places: number;
  log: Logger;
  /** This process took the partition, so its journal must be read from the start. */
  onTaken: (partition: number) => void;
  /**
   * Called when this process gives the partition away, because it owns too many or leaves. Returns the ids of lanes
   * with running work, which keep their right. Synchronous, because the rights are renamed in the same step in which
   * the message is sent.
   */
  onGiving(partition: number): readonly string[];
  /** Another process took the partition. All work there is lost, except in kept lanes. */
  onLost: (partition: number) => void;
  /** The mark of a kept lane is gone, so the work in that lane is lost. */
  onKeptLost(laneId: string): void;
  /** Some process no longer keeps this lane, which can be unknown here. Not called while the connection is lost. */
  onFreed(laneId: string): void;
  /** The number of lanes with running work, in one partition or in all. */
  running(partition?: number): number;
}

/**
 * Divides the partitions among the processes on one Redis, so that each partition has one living owner. A heartbeat
 * takes free partitions up to an even share. A process that owns too many gives the surplus away.
 */
export interface Partitions {
  /** Resolves when this process has its first share of the partitions. Waits while Redis is unavailable. */
  start(): Promise<void>;
  owned(): readonly number[];
  /** True if this process owns the partition or keeps a lane in it. */
  isHeld(partition: number): boolean;
  /**
   * Returns the right to work on a lane. Undefined if this process does not own the partition. The right's key changes
   * when this process gives the partition away, so read the key at each use.
   */
  rightOf(partition: number, laneId: string): Fence | undefined;
  /** The number of slots of all processes, according to the last heartbeat. */
  placesOfAll(): number;
  runningElsewhere(): number;
  /** The number of living processes, including this one. */
  processes(): number;
  /**
   * Gives all partitions away. Heartbeats continue until `close`, because of the kept lanes. Resolves when Redis has
   * stored the change, even if an outage delays that. Never rejects.
   */
  leave(): Promise<void>;
  /** Stops renewing the mark of a lane, because the work on the lane has ended. */
  forgetKept(laneId: string): void;
  /** Never rejects. */
  close(): Promise<void>;
  /**
   * The key of a stream that gets an entry whenever `owned` changes. Blocking reads include it, so that they end then.
   */
  readonly wakeKey: string;
  /** The connection for subscriptions. Others can subscribe with it too. */
  readonly listening: RedisClient;
}

const beatAnswer = z.tuple([z.number(), z.number(), z.number(), z.number(), z.string(), z.number(), z.number()]);

interface Standing {
  readonly id: string;
  readonly owned: Map<number, Holding>;
  /** For each partition, the number of the message that gave it away. Responses to earlier messages are outdated. */
  readonly givenWith: Map<number, number>;
  places: number;
  /** The largest number of partitions that this process can own. */
  share: number;
  /** Before this time of the monotonic clock, no other process can take the owned partitions. */
  ownedUntil: number;
  ofAll: { processes: number; places: number; runningElsewhere: number };
  /** The number of the last message that this process sent to Redis. */
  sent: number;
  isClosed: boolean;
}

interface Deps {
  options: PartitionsOptions;
  standing: Standing;
  reach: Reach;
  kept: KeptLanes;
  onChanged(): void;
}

export function createPartitions(options: PartitionsOptions): Partitions {
  const { connection, log, places } = options;
  const id = randomBytes(9).toString("base64url");
  const wakeKey = PART_KEYS.wake(id);
  const listening = createListeningClient(connection);
  const standing: Standing = {
    id,
    owned: new Map(),
    givenWith: new Map(),
    places,
    share: places === 0 ? 0 : PARTITIONS,
    ownedUntil: Number.NEGATIVE_INFINITY,
    ofAll: { processes: 1, places, runningElsewhere: 0 },
    sent: 0,
    isClosed: false,
  };
  const { owned } = standing;
  const reach = createReach(connection, log);
  const kept = createKeptLanes({ client: connection.client, reach, log, onLost: options.onKeptLost });
  const deps: Deps = { options, standing, reach, kept, onChanged: () => wake(connection, wakeKey, log) };
  const give = createGiving(deps);
  const sendBeat = createBeat(deps, give, () => beatSoon());
  const beats = createSingleRun(sendBeat);
  let timers: NodeJS.Timeout[] = [];

  /**
   * Redis may be available again. Starts another heartbeat, because the running one can hang on the lost connection.
   */
  function onReturn(): void {
    void beats.restart();
    void kept.renewal.restart();
  }

  function beatSoon(): void {
    reach.noteAlive();
    if (timers.length > 0) void beats.run();
  }

  async function check(holding: Holding, laneId: string): Promise<void> {
    for (;;) {
      const mark = kept.markOf(holding, laneId);
      const isOver = holding.isOver && mark === undefined;
      if (isOver || standing.isClosed) throw new FencedError("Another process may own this partition.");
      const until = mark?.until ?? standing.ownedUntil;
      if (reach.noteAlive() <= until || reach.isHeldByOutage(until)) return;
      if (mark === undefined) await beats.run();
      else await (mark.isMarked ? kept.renewal.run() : give());
      if (reach.isFailing()) await sleep(AGAIN_MS);
    }
  }

  return {
    wakeKey,
    listening,
    async start() {
      const channels = {
        [PART_KEYS.alive(id)]: noop,
        [PART_KEYS.changed]: beatSoon,
        [PART_KEYS.freed]: options.onFreed,
      };
      listening.connect().catch(noop);
      for (let isListening = false; !standing.isClosed; await sleep(BEAT_MS)) {
        isListening ||= (await reach.ask(z.literal(true), () => subscribe(listening, channels), listening)) === true;
        if (isListening && (await sendBeat())) break;
      }
      if (standing.isClosed) return;
      timers = [setInterval(beatSoon, BEAT_MS).unref(), setInterval(() => void kept.renewal.run(), KEEP_MS).unref()];
      connection.client.on("ready", onReturn);
      listening.on("ready", beatSoon);
    },
    owned: () => [...owned.keys()],
    isHeld: (partition) => owned.has(partition) || kept.hasOf(partition),
    rightOf(partition, laneId) {
      const holding = owned.get(partition);
      if (holding === undefined) return undefined;
      return {
        get key() {
          return kept.markOf(holding, laneId) === undefined ? PART_KEYS.owner(partition) : PART_KEYS.kept(laneId);
        },
        value: holding.value,
        check: () => check(holding, laneId),
        // After this process gave the partition away, another one owns it, so this fence no longer covers its names.
        covers: (name) => !holding.isOver && partitionOf(name) === partition,
      };
    },
    placesOfAll: () => standing.ofAll.places,
    runningElsewhere: () => standing.ofAll.runningElsewhere,
    processes: () => standing.ofAll.processes,
    leave() {
      standing.places = standing.share = 0;
      return give();
    },
    forgetKept: kept.forget,
    async close() {
      if (standing.isClosed) return;
      standing.isClosed = true;
      for (const timer of timers) clearInterval(timer);
      connection.client.off("ready", onReturn);
      if (listening.isOpen) listening.destroy();
      // Other processes can take the partitions of a process that is not a member.
      const leave = connection.client.multi().hDel(PART_KEYS.members, id).publish(PART_KEYS.changed, "");
      await reach.ask(z.unknown(), () => leave.exec());
    },
  };
}

/** Creates the function that sends a heartbeat. The function resolves to true if Redis responded. It never rejects. */
function createBeat(
  { options, standing, reach, onChanged }: Deps,
  give: () => Promise<void>,
  beatSoon: () => void,
): () => Promise<boolean> {
  const { client, backForMs } = options.connection;
  const { id, owned, givenWith } = standing;
  let answered = 0;
  /** Redis's clock minus the monotonic clock, in milliseconds. */
  let ahead: number | undefined;

  return async () => {
    let number = 0;
    let fromMs = 0;
    const answer = await reach.ask(beatAnswer, () => {
      if (standing.isClosed) throw new StoreError("This process has left.");
      // Reads the state only now, when the message is sent, because `run` may have waited for the connection.
      [number, fromMs] = [++standing.sent, reach.noteAlive()];
      const held = [...owned.values()].map(({ partition, value }) => `${partition}:${value.split(":")[0]}`);
      const afterOutage = backForMs() < OWNERS_FIRST_MS ? [held.join(" ")] : [];
      const given = [id, String(standing.places), String(options.running())];
      const sentAt = ahead === undefined ? "" : String(Math.round(fromMs + ahead));
      return evalScript(client, BEAT, () => ({ keys: [], arguments: [...given, sentAt, ...afterOutage] }));
    });
    if (answer === undefined || standing.isClosed) return false;
    if (number < answered) return true;
    answered = number;
    const [processes, places, runningElsewhere, share, own, redisNow, goneInMs] = answer;
    // Sends a heartbeat when a process that lost its connection counts as dead, to take over its partitions.
    if (goneInMs >= 0) setTimeout(beatSoon, goneInMs + 1).unref();
    ahead = redisNow - fromMs;
    standing.ofAll = { processes, places, runningElsewhere };
    standing.share = standing.places === 0 ? 0 : share;
    standing.ownedUntil = fromMs + GONE_MS - MARGIN_MS;
    const told = readOwned(own, id).filter(([partition]) => number > (givenWith.get(partition) ?? 0));
    if (adopt(new Map(told), owned, options)) onChanged();
    if (owned.size > standing.share) void give();
    return true;
  };
}

function readOwned(text: string, id: string): Array<[partition: number, value: string]> {
  const pairs = text === "" ? [] : text.split(" ").map((pair) => pair.split(":"));
  return pairs.map(([partition, epoch = ""]) => [Number(partition), `${epoch}:${id}`]);
}

/** Updates the owned partitions from a heartbeat's response. Returns true if they changed. */
function adopt(told: ReadonlyMap<number, string>, owned: Map<number, Holding>, options: PartitionsOptions): boolean {
  const lost = [...owned.values()].filter(({ partition, value }) => told.get(partition) !== value);
  for (const holding of lost) {
    owned.delete(holding.partition);
    holding.isOver = true;
    options.log.warn({ partition: holding.partition }, "another process has taken over a partition");
    options.onLost(holding.partition);
  }
  const taken = [...told].filter(([partition]) => !owned.has(partition));
  for (const [partition, value] of taken) {
    owned.set(partition, { partition, value, isOver: false });
    options.onTaken(partition);
  }
  return lost.length + taken.length > 0;
}

/**
 * Creates the function that gives surplus partitions away, starting with those that have the least running work. The
 * function resolves when Redis has confirmed this and all earlier messages. It never rejects.
 */
function createGiving({ options, standing, reach, kept, onChanged }: Deps): () => Promise<void> {
  const { owned, givenWith } = standing;
  let giving = Promise.resolve();

  async function release(): Promise<void> {
    let parcel: ReturnType<typeof pack> | undefined;
    for (let attempts = 0; !standing.isClosed; attempts++) {
      if (parcel === undefined && owned.size <= standing.share) return;
      // Retries the first time without a pause, to reach Redis before the retries of other writes that were lost too.
      if (attempts > 1) await sleep(AGAIN_MS);
      let [number, fromMs] = [0, 0];
      const lost = await reach.ask(laneIds, () => {
        [number, fromMs] = [++standing.sent, reach.noteAlive()];
        // Packs only now, when the message is sent, because `pack` renames the rights: earlier writes use the old
        // names, later ones the new names.
        parcel ??= pack();
        return options.connection.client.eval(RELEASE, { arguments: parcel.given });
      });
      if (lost === undefined || parcel === undefined) continue;
      for (const { partition } of parcel.leaving) givenWith.set(partition, number);
      for (const mark of parcel.marks) confirm(mark, fromMs);
      for (const laneId of lost) kept.lose(laneId);
      return onChanged();
    }
  }

  function pack() {
    const surplus = Math.max(0, owned.size - standing.share);
    const byWork = [...owned.values()].toSorted(
      (one, other) => options.running(one.partition) - options.running(other.partition),
    );
    const leaving = byWork.slice(0, surplus);
    const marks: Mark[] = [];
    const given = [standing.places === 0 ? standing.id : ""];
    for (const holding of leaving) {
      const { partition, value } = holding;
      // A lane that this process already kept keeps its older mark.
      const staying = options.onGiving(partition).filter((laneId) => !kept.has(laneId));
      marks.push(...staying.map((laneId) => kept.add(laneId, holding, standing.ownedUntil)));
      owned.delete(partition);
      holding.isOver = true;
      givenWith.set(partition, Number.POSITIVE_INFINITY);
      given.push(String(partition), value, String(staying.length), ...staying);
    }
    return { leaving, marks, given };
  }

  return () => (giving = giving.then(release));
}

async function subscribe(client: RedisClient, channels: Record<string, (text: string) => void>): Promise<true> {
  await Promise.all(Object.entries(channels).map(([channel, onText]) => client.subscribe(channel, onText)));
  return true;
}

/** Ends the blocking read, so that the next read covers the partitions that this process owns by then. */
function wake({ client, run }: RedisConnection, key: string, log: Logger): void {
  const trim = { TRIM: { strategy: "MAXLEN", threshold: 1 } } as const;
  run(() => client.multi().xAdd(key, "*", { w: "" }, trim).pExpire(key, WAKE_KEPT_MS).exec()).catch((err: unknown) =>
    log.debug({ err }, "a blocking read takes longer than it should"),
  );
}

function noop(): void {}
