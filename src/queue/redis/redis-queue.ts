import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { cut } from "../../concurrency/cut.ts";
import { createKeyedQueue } from "../../concurrency/keyed-queue.ts";
import { createUnderWay, type UnderWay } from "../../concurrency/under-way.ts";
import type { RedisConnection } from "../../store/redis-connection.ts";
import { MAX_DRAWINGS } from "../admission.ts";
import { isDrawing, laneOf, toErased, toPerson } from "../event-lane.ts";
import { CUT_MS, type Queue, type QueueOptions, RETRY_MS, type Worker } from "../queue.ts";
import { type Bell, type Bells, createBells, type Ring } from "./bells.ts";
import { createDrain } from "./drain.ts";
import { type AuthorErasure, createEar } from "./ear.ts";
import { type BudgetOptions, createLaneBudgets } from "./lane-budgets.ts";
import { createRedisLanes, type RedisLanes } from "./lanes.ts";
import { createLeases } from "./leases.ts";
import { createPlaces, type Places } from "./places.ts";
import type { Run } from "./run.ts";
import { createSweep, type Sweep } from "./sweep.ts";

const BEAT_MS = 1_000;
/** Lanes whose process was killed wait so much longer at most. */
const LOOK_MS = 250;
/** Longest that the work on a person may take to end, wherever it runs, the death of its process included. */
const FORGET_MS = 20_000;
const FORGET_LOOK_MS = 20;
/** A process misses the notice if its connection is lost at that moment, so the notice is repeated. */
const TELL_AGAIN_MS = 1_000;
/** Longest that the end waits for Redis before what runs is cut, and once more after that. */
const CLOSE_STEP_MS = 500;

export interface RedisQueueOptions extends QueueOptions, BudgetOptions {
  connection: RedisConnection;
  /** Milliseconds by a clock that all processes share. */
  now(): number;
  /** Another process has taken over what this one was working on. */
  onTakenOver?(): void;
}

/**
 * The queue of all processes on one Redis. An event is stored in the list of its lane, and a bell is rung for that; a
 * process that hears it works on the lane for as long as its lease holds. When it dies another one hears the bell.
 */
export function createRedisQueue(options: RedisQueueOptions): Queue {
  const { connection, maxActive, now, log, retryMs = RETRY_MS, cutMs = CUT_MS } = options;
  const workerId = randomUUID();
  const lanes = createRedisLanes(connection, now, workerId, log);
  const bells = createBells(connection, workerId, log);
  const leases = createLeases(lanes, log, options.onTakenOver);
  connection.client.on("ready", leases.renew);
  const ring = createRing(bells, log);
  const places = createPlaces({ connection, workerId, places: maxActive, now, ring, log });
  const sweep = createSweep({ connection, lanes, places, bells, now, ring });
  const running = new Map<string, Run>();
  // A lane that comes back waits until what was done in it before has ended here.
  const { run: inTurn } = createKeyedQueue();
  const hearing = createUnderWay();
  const ear = createEar({ connection, workerId, lanes, running, log });
  const heart = createHeart(places, lanes, () => closing, log);
  let closing = false;
  let listening: Promise<void> | undefined;
  const drain = createDrain({
    lanes,
    places,
    leases,
    budgets: createLaneBudgets(options),
    ring,
    running,
    workerId,
    retryMs,
    cutMs,
    log,
    backForMs: connection.backForMs,
    isClosing: () => closing,
  });

  /** Takes in nothing, and yet shares the limits of the platforms. */
  async function count(): Promise<void> {
    await ear.open(undefined);
    heart.start();
    await places.stop().catch(noop);
    await heart.beat();
  }

  async function listen(worker: Worker): Promise<void> {
    await ear.open(worker);
    // If Redis goes away at this moment, the next second tries again.
    await heart.beat(sweep);
    if (closing) return;
    heart.start(sweep);
    // Lanes that pause, or wait for their end, take no place.
    const work = (bell: Bell) => inTurn(bell.laneId, () => drain(bell, worker));
    await bells.hear((bell) => hearing.hold(work(bell)), maxActive + MAX_DRAWINGS);
  }

  /** Lets others hear what was to be done here, and blames nothing that runs here for the end. */
  async function handOver(): Promise<void> {
    await listening;
    await places.stop().catch(noop);
    const left = await bells.pause().catch((): string[] => []);
    await Promise.allSettled([
      ...left.map((laneId) => ring(laneId)),
      ...[...running.values()].map((run) => run.uncount()),
    ]);
  }

  return {
    async accept(event) {
      if (closing) throw new Error("This process is shutting down and accepts no more events.");
      if (!(await lanes.accept(event))) return false;
      heart.waiting += 1;
      // Stored it is; a bell that does not ring is rung by the sweep.
      void ring(laneOf(event).id);
      return true;
    },
    tell: (event) => lanes.tell(event),
    start(worker) {
      listening = (worker === undefined ? count() : listen(worker)).catch((err: unknown) =>
        log.error({ err }, "the queue could not be opened"),
      );
    },
    conversationOf: (messageId) => lanes.conversationOf(messageId),
    progressed(workId) {
      const run = running.values().find(({ taken }) => taken.some((event) => laneOf(event).workId === workId));
      if (run === undefined) return;
      run.progressed();
      const notNoted = (err: unknown) => log.warn({ err }, "the progress of work could not be noted");
      lanes.countAnew(run.taken.map(({ key }) => key)).catch(notNoted);
    },
    processes: () => Math.max(1, heart.processes),
    depth: () => ({ waiting: heart.waiting, active: running.size }),
    async forget(platform, authorId, exceptKey) {
      const erasure: AuthorErasure = { erased: { platform, authorId, exceptKey } };
      await lanes.erase(toErased(erasure.erased));
      await untilLeft(places, toPerson(platform, authorId), () => lanes.tell(erasure));
    },
    forgetDrawings: (isMeant) => lanes.erase((event) => isDrawing(event) && isMeant(event)),
    async close(graceMs) {
      closing = true;
      const cutAt = performance.now() + graceMs;
      // This never ends while Redis is away, and running work is cut all the same.
      await within(handOver());
      await untilEnded(running, hearing, Math.max(0, cutAt - performance.now()), cutMs);
      heart.stop();
      leases.close();
      connection.client.off("ready", leases.renew);
      await within(hearing.settled().then(() => Promise.allSettled([bells.close(), places.leave()])));
      ear.close();
    },
  };
}

/** Each second: says that this process lives, lets it sweep, and counts what waits and who lives. */
function createHeart(places: Places, lanes: RedisLanes, isClosing: () => boolean, log: Logger) {
  const timers: NodeJS.Timeout[] = [];

  async function tryTo(task: () => Promise<void>): Promise<void> {
    try {
      await task();
    } catch (error) {
      log.debug({ err: error }, "the queue could not be swept; the next second tries again");
    }
  }

  const heart = {
    /** Events, in all processes; as of the last beat, and what was accepted since. */
    waiting: 0,
    processes: 1,
    beat: (sweep?: Sweep): Promise<void> =>
      tryTo(async () => {
        heart.processes = await places.beat();
        if (!isClosing()) await sweep?.ringUnheard();
        heart.waiting = await lanes.countWaiting();
      }),
    start(sweep?: Sweep): void {
      timers.push(setInterval(() => void heart.beat(sweep), BEAT_MS));
      const look = async () => (isClosing() ? undefined : await sweep?.takeFromTheGone());
      if (sweep !== undefined) timers.push(setInterval(() => void tryTo(look), LOOK_MS));
    },
    stop: () => timers.forEach(clearInterval),
  };
  return heart;
}

function createRing(bells: Pick<Bells, "ring">, log: Logger): Ring {
  return (laneId, workerId) =>
    bells
      .ring(laneId, workerId)
      .catch((err: unknown) => log.warn({ err, laneId }, "a bell could not be rung; the sweep rings it"));
}

/** Tells every process to leave the work on a person. Resolves when none works on it any more. */
async function untilLeft(places: Pick<Places, "look">, person: string, tell: () => Promise<void>): Promise<void> {
  const until = performance.now() + FORGET_MS;
  let tellAt = 0;
  for (;;) {
    if (performance.now() > tellAt) {
      await tell();
      tellAt = performance.now() + TELL_AGAIN_MS;
    }
    const { active } = await places.look();
    if (!active.values().some(({ people }) => people?.includes(person))) return;
    if (performance.now() > until) throw new Error("The work on a person who is erased does not end.");
    await sleep(FORGET_LOOK_MS);
  }
}

/** Lets what runs go on for `graceMs`, then cuts it, and `cutMs` later waits for it no more. */
async function untilEnded(
  running: ReadonlyMap<string, Run>,
  hearing: Pick<UnderWay, "settled">,
  graceMs: number,
  cutMs: number,
): Promise<void> {
  const grace = setTimeout(() => {
    for (const { controller } of running.values()) cut(controller, "shutdown");
  }, graceMs);
  const over = Promise.withResolvers<void>();
  const cutting = setTimeout(() => {
    for (const run of running.values()) run.abandon();
    over.resolve();
  }, graceMs + cutMs);
  await Promise.race([hearing.settled(), over.promise]);
  clearTimeout(grace);
  clearTimeout(cutting);
}

/** Waits for what needs Redis, for a moment only, and well or not. */
async function within(task: Promise<unknown>): Promise<void> {
  await Promise.race([task.catch(noop), sleep(CLOSE_STEP_MS, undefined, { ref: false })]);
}

function noop(): void {}
