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
/**
 * After an outage, the owners send heartbeats first. During this time, no process takes partitions from another one.
 */
const OWNERS_FIRST_MS = 2_500;
const AGAIN_MS = 50;
const WAKE_KEPT_MS = 10_000;

export interface PartitionsOptions {
  connection: RedisConnection;
  /**
   * The number of conversations that this process works on in parallel. With 0, it only accepts events and owns
   * nothing.
   */
  places: number;
  log: Logger;
  /** This process owns the partition and should read its journal from "0-0". */
  onTaken: (partition: number) => void;
  /**
   * This process gives the partition away, because it owns too many or is leaving. Returns the lanes with running work,
   * which continues under its right. Called in the same turn of the event loop in which the work's rights are renamed
   * and the message is sent to Redis.
   */
  onGiving(partition: number): readonly string[];
  /**
   * Another process took the partition, so all work under its right is lost. Lanes that were kept before that are not
   * lost.
   */
  onLost: (partition: number) => void;
  /** The mark of a kept lane is gone, so the work in that lane is lost. */
  onKeptLost(laneId: string): void;
  /**
   * A process no longer keeps this lane. Called for all lanes, including unknown ones. Calls are missed while the
   * connection is lost.
   */
  onFreed(laneId: string): void;
  /** Conversations that are being worked on here, in one partition or in all. */
  running(partition?: number): number;
}

/**
 * Divides the partitions among the processes on one Redis. Each partition belongs to one living process. A heartbeat
 * takes free partitions up to an even share and reports the owned ones. A process that owns too many gives the rest
 * away.
 */
export interface Partitions {
  /** Resolves when this process has its first share. Waits if Redis is unavailable. */
  start(): Promise<void>;
  owned(): readonly number[];
  /** True if this process owns the partition, or keeps a lane of it. */
  isHeld(partition: number): boolean;
  /**
   * The right to work on a lane in a partition. Undefined if this process does not own the partition. The right is
   * renamed if the partition leaves while the lane runs, so read its key at each use and do not copy it.
   */
  rightOf(partition: number, laneId: string): Fence | undefined;
  /** The slots of all processes, including this one, at the last heartbeat. */
  placesOfAll(): number;
  runningElsewhere(): number;
  /** The number of living processes, including this one. */
  processes(): number;
  /**
   * Gives all partitions away and claims no others. Heartbeats continue until `close`, because of the kept lanes.
   * Resolves when Redis has stored this, even if that takes a whole outage. Never rejects.
   */
  leave(): Promise<void>;
  /** The work on a lane has ended. If it has a mark, the mark is removed or expires. */
  forgetKept(laneId: string): void;
  /** Never rejects. */
  close(): Promise<void>;
  /** A stream that the blocking read must include. It gets an entry whenever `owned` changes. */
  readonly wakeKey: string;
  /** The connection for subscriptions. Other subscribers can use it too. */
  readonly listening: RedisClient;
}

const beatAnswer = z.tuple([z.number(), z.number(), z.number(), z.number(), z.string(), z.number(), z.number()]);

/** This process's knowledge about the owners. */
interface Standing {
  readonly id: string;
  readonly owned: Map<number, Holding>;
  /** For each partition, the number of the message that gave it away. Responses to earlier messages are outdated. */
  readonly givenWith: Map<number, number>;
  places: number;
  /** The largest number of partitions that this process can own. */
  share: number;
  /** Until this time, no other process can take the owned partitions. By the monotonic clock. */
  ownedUntil: number;
  ofAll: { processes: number; places: number; runningElsewhere: number };
  /** Number of the newest message that was sent. */
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

  /** Redis may be available again. A heartbeat that hangs on the lost connection must not delay this one. */
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
        // A partition with a kept lane has another owner.
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
      // If a process is not a member, its partitions are free.
      const leave = connection.client.multi().hDel(PART_KEYS.members, id).publish(PART_KEYS.changed, "");
      await reach.ask(z.unknown(), () => leave.exec());
    },
  };
}

/** Sends one heartbeat. Resolves to true if Redis responded. Never rejects. */
function createBeat(
  { options, standing, reach, onChanged }: Deps,
  give: () => Promise<void>,
  beatSoon: () => void,
): () => Promise<boolean> {
  const { client, backForMs } = options.connection;
  const { id, owned, givenWith } = standing;
  let answered = 0;
  /** Redis's clock minus the monotonic one. */
  let ahead: number | undefined;

  return async () => {
    let number = 0;
    let fromMs = 0;
    const answer = await reach.ask(beatAnswer, () => {
      if (standing.isClosed) throw new StoreError("This process has left.");
      // `run` waits for the connection, so decisions made before it can be outdated.
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
    // Takes the lost process's partitions at that moment instead of at the next regular heartbeat.
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

/** Adopts Redis's information about the owners. Returns true if anything has changed. */
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
 * Gives the surplus partitions away, starting with those that have the least running work. Resolves when Redis has
 * confirmed this and all earlier messages. Never rejects.
 */
function createGiving({ options, standing, reach, kept, onChanged }: Deps): () => Promise<void> {
  const { owned, givenWith } = standing;
  let giving = Promise.resolve();

  async function release(): Promise<void> {
    let parcel: ReturnType<typeof pack> | undefined;
    for (let attempts = 0; !standing.isClosed; attempts++) {
      if (parcel === undefined && owned.size <= standing.share) return;
      // The first retry starts before other writes that were lost with the same connection.
      if (attempts > 1) await sleep(AGAIN_MS);
      let [number, fromMs] = [0, 0];
      const lost = await reach.ask(laneIds, () => {
        [number, fromMs] = [++standing.sent, reach.noteAlive()];
        // Packs only at the moment of sending, because `pack` renames the rights: writes sent before RELEASE use the
        // old names, later ones the new names.
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
      // If this process gave the partition away earlier and kept a lane, the lane continues under its older mark.
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

/** Ends a blocking read, so that the next read covers the partitions that are owned now. */
function wake({ client, run }: RedisConnection, key: string, log: Logger): void {
  const trim = { TRIM: { strategy: "MAXLEN", threshold: 1 } } as const;
  run(() => client.multi().xAdd(key, "*", { w: "" }, trim).pExpire(key, WAKE_KEPT_MS).exec()).catch((err: unknown) =>
    log.debug({ err }, "a blocking read takes longer than it should"),
  );
}

function noop(): void {}
