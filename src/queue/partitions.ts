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
/** After an outage, no process takes partitions from others for this time, so that the owners can send heartbeats. */
const OWNERS_FIRST_MS = 2_500;
const AGAIN_MS = 50;
const WAKE_KEPT_MS = 10_000;

export interface PartitionsOptions {
  connection: RedisConnection;
  /** The slots for conversations. With 0, this process only accepts events. */
  places: number;
  log: Logger;
  /** The partition's journal must be read from its start. */
  onTaken: (partition: number) => void;
  /**
   * This process owns too many partitions, or leaves. Returns the lanes with running work, which keep their right.
   * Called synchronously while the rights are renamed and the message is sent.
   */
  onGiving(partition: number): readonly string[];
  /** Another process took the partition. All work there is lost, except kept lanes. */
  onLost: (partition: number) => void;
  /** The lane's mark is gone, so its work is lost. */
  onKeptLost(laneId: string): void;
  /** A process no longer keeps this lane, which can be unknown here. Calls are missed without a connection. */
  onFreed(laneId: string): void;
  /** The number of running lanes, in one partition or in all. */
  running(partition?: number): number;
}

/**
 * Divides the partitions among the processes on one Redis, so that each has one living owner. Heartbeats take free
 * partitions up to an even share. A process with too many gives the rest away.
 */
export interface Partitions {
  /** Resolves when this process has its share. Waits while Redis is unavailable. */
  start(): Promise<void>;
  owned(): readonly number[];
  /** True for an owned partition, and for one with a kept lane. */
  isHeld(partition: number): boolean;
  /**
   * Undefined if this process does not own the partition. If the partition is given away, the key of the right changes,
   * so read it at each use.
   */
  rightOf(partition: number, laneId: string): Fence | undefined;
  /** The slots of all processes at the last heartbeat. */
  placesOfAll(): number;
  runningElsewhere(): number;
  /** Includes this process. */
  processes(): number;
  /**
   * Gives all partitions away. Heartbeats continue until `close`, for the kept lanes. Resolves when Redis has stored
   * this, even after an outage. Never rejects.
   */
  leave(): Promise<void>;
  /** The work on a lane has ended, so its mark can expire. */
  forgetKept(laneId: string): void;
  /** Never rejects. */
  close(): Promise<void>;
  /** A stream that gets an entry whenever `owned` changes, to end a blocking read. */
  readonly wakeKey: string;
  /** For subscriptions, also of others. */
  readonly listening: RedisClient;
}

const beatAnswer = z.tuple([z.number(), z.number(), z.number(), z.number(), z.string(), z.number(), z.number()]);

interface Standing {
  readonly id: string;
  readonly owned: Map<number, Holding>;
  /** For each partition, the message that gave it away. Responses to earlier messages are outdated. */
  readonly givenWith: Map<number, number>;
  places: number;
  /** The most partitions that this process can own. */
  share: number;
  /** No other process can take the owned partitions before this time of the monotonic clock. */
  ownedUntil: number;
  ofAll: { processes: number; places: number; runningElsewhere: number };
  /** The number of the last message. */
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

  /** Starts another heartbeat, because the running one can hang on the lost connection. */
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
        // Another process owns the partition of a kept lane.
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
      // The partitions of a process that is no member are free.
      const leave = connection.client.multi().hDel(PART_KEYS.members, id).publish(PART_KEYS.changed, "");
      await reach.ask(z.unknown(), () => leave.exec());
    },
  };
}

/** Resolves to true if Redis responded. Never rejects. */
function createBeat(
  { options, standing, reach, onChanged }: Deps,
  give: () => Promise<void>,
  beatSoon: () => void,
): () => Promise<boolean> {
  const { client, backForMs } = options.connection;
  const { id, owned, givenWith } = standing;
  let answered = 0;
  /** Redis's clock minus the monotonic clock. */
  let ahead: number | undefined;

  return async () => {
    let number = 0;
    let fromMs = 0;
    const answer = await reach.ask(beatAnswer, () => {
      if (standing.isClosed) throw new StoreError("This process has left.");
      // Read when the message is sent, because `run` can wait for the connection.
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
    // Takes over from a process that lost its connection when it counts as dead.
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

/** Returns true if anything changed. */
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
 * Gives surplus partitions away, first those with the least running work. Resolves when Redis has confirmed this and
 * all earlier messages. Never rejects.
 */
function createGiving({ options, standing, reach, kept, onChanged }: Deps): () => Promise<void> {
  const { owned, givenWith } = standing;
  let giving = Promise.resolve();

  async function release(): Promise<void> {
    let parcel: ReturnType<typeof pack> | undefined;
    for (let attempts = 0; !standing.isClosed; attempts++) {
      if (parcel === undefined && owned.size <= standing.share) return;
      // The first retry must precede other writes that were lost with the connection.
      if (attempts > 1) await sleep(AGAIN_MS);
      let [number, fromMs] = [0, 0];
      const lost = await reach.ask(laneIds, () => {
        [number, fromMs] = [++standing.sent, reach.noteAlive()];
        // `pack` renames the rights, so it runs when the message is sent: earlier writes use the old names, later ones
        // the new names.
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
      // A lane that this process kept before stays under its older mark.
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

/** The next read covers the partitions that are then owned. */
function wake({ client, run }: RedisConnection, key: string, log: Logger): void {
  const trim = { TRIM: { strategy: "MAXLEN", threshold: 1 } } as const;
  run(() => client.multi().xAdd(key, "*", { w: "" }, trim).pExpire(key, WAKE_KEPT_MS).exec()).catch((err: unknown) =>
    log.debug({ err }, "a blocking read takes longer than it should"),
  );
}

function noop(): void {}
