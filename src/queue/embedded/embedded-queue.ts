import type { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { cut } from "../../concurrency/cut.ts";
import type { InboundEvent } from "../../port/events.ts";
import { chooseNext, FIRST_ROUND, type Work } from "../admission.ts";
import { SUSPECT_DEATHS } from "../attempts.ts";
import { isDrawing, isErasedWith, laneOf, toErased, toWork } from "../event-lane.ts";
import { CUT_MS, type Queue, type QueueOptions, RETRY_MS, type Worker } from "../queue.ts";
import { type EventTable, openEventTable } from "./event-table.ts";
import { createLaneWork, uncount } from "./lane-work.ts";
import { createLanes, type Lane, type Lanes } from "./lanes.ts";

const SWEEP_INTERVAL_MS = 3_600_000;
export interface EmbeddedQueueOptions extends QueueOptions {
  database: DatabaseSync;
}

interface Running {
  lane: Lane;
  controller: AbortController;
  ended: Promise<void>;
}

/** The queue of one process: events on disk from `accept` until their work is done, the order of the work in memory. */
export function createEmbeddedQueue(options: EmbeddedQueueOptions): Queue {
  const { database, maxActive, log, retryMs = RETRY_MS, cutMs = CUT_MS } = options;
  const table = openEventTable(database);
  const lanes = createLanes();
  const workOn = createLaneWork({ table, lanes, log, retryMs, onReady: dispatch });
  const running = new Set<Running>();
  /** Cache: `toWork` is asked for every waiting lane each time a place frees up. */
  const works = new WeakMap<InboundEvent, Work>();
  const suspects = table.diedOn(SUSPECT_DEATHS);
  let rounds = FIRST_ROUND;
  let worker: Worker | undefined;
  let closing = false;

  table.sweep();
  const sweeping = setInterval(sweep, SWEEP_INTERVAL_MS).unref();
  for (const event of table.waiting(log)) lanes.add(event);

  function sweep(): void {
    try {
      table.sweep();
    } catch (error) {
      log.warn({ err: error }, "old claims could not be removed; the next hour tries again");
    }
  }

  function choose(ready: readonly Lane[]): Lane | undefined {
    // A lane with nothing waiting is done, and about to give its place back.
    const under = [...running].filter(({ lane }) => lane.waiting.length > 0).map(({ lane }) => toLaneWork(lane));
    const choice = chooseNext(rounds, ready.map(toLaneWork), under, maxActive);
    rounds = choice?.rounds ?? rounds;
    return choice && ready[choice.index];
  }

  function toLaneWork({ id, taken, waiting }: Lane): Work {
    const event = taken[0] ?? waiting[0];
    if (event === undefined) throw new Error(`Nothing waits in the lane ${id}.`);
    if (suspects.has(event.key)) return { ...toWork(event), isSuspect: true };
    const known = works.get(event) ?? toWork(event);
    works.set(event, known);
    return known;
  }

  function dispatch(): void {
    if (worker === undefined || closing) return;
    const lane = lanes.next(choose);
    if (lane === undefined) return;
    const work: Running = { lane, controller: new AbortController(), ended: Promise.resolve() };
    running.add(work);
    work.ended = workOn(lane, worker, work.controller.signal).finally(() => {
      running.delete(work);
      dispatch();
    });
    dispatch();
  }

  return {
    // Asynchronous by contract: another queue stores over the network.
    async accept(event) {
      if (closing) throw new Error("This process is shutting down and accepts no more events.");
      if (!table.claim(event)) return false;
      lanes.add(event);
      worker?.onAccepted(event);
      dispatch();
      // No free place took it at once: the person is shown that it waits.
      if (![...running].some(({ lane }) => lane.waiting.includes(event))) worker?.onWaiting?.(event);
      return true;
    },
    tell: async (event) => worker?.onAccepted(event),
    start(newWorker) {
      worker = newWorker;
      dispatch();
    },
    conversationOf: async (messageId) => lanes.conversationOf(messageId),
    progressed(workId) {
      const lane = [...running].find((work) => work.lane.taken.some((event) => laneOf(event).workId === workId))?.lane;
      if (lane === undefined) return;
      for (const { key } of lane.taken) suspects.delete(key);
      try {
        table.countAnew(lane.taken);
      } catch (err) {
        log.warn({ err, conversationId: lane.conversationId }, "the progress of work could not be noted");
      }
    },
    processes: () => 1,
    depth: () => ({ waiting: lanes.waiting(), active: running.size }),
    async forget(platform, authorId, exceptKey) {
      const isTheirs = toErased({ platform, authorId, exceptKey });
      table.forget(platform, authorId, exceptKey);
      lanes.drop(isTheirs);
      // A command of theirs may itself be waiting here.
      const theirs = findWork(running, (event) => isErasedWith(event) && isTheirs(event));
      for (const { controller } of theirs) cut(controller, "forgotten");
      await Promise.all(theirs.map(({ ended }) => ended));
    },
    forgetDrawings: async (isMeant) => forgetDrawings(table, lanes, running, isMeant),
    async close(graceMs) {
      closing = true;
      clearInterval(sweeping);
      for (const { lane } of running) uncount(table, lane, log);
      const ended = Promise.all([...running].map((work) => work.ended));
      const grace = setTimeout(() => {
        for (const { controller } of running) cut(controller, "shutdown");
      }, graceMs);
      const isOver = await Promise.race([ended.then(() => true), sleep(graceMs + cutMs, false, { ref: false })]);
      clearTimeout(grace);
      if (!isOver) log.warn({ active: running.size }, "work did not end in time; the next start takes it up again");
    },
  };
}

function findWork(running: ReadonlySet<Running>, isMeant: (event: InboundEvent) => boolean): Running[] {
  return [...running].filter(({ lane }) => lane.taken.some(isMeant));
}

/** Events that are being worked on stay in the table, for their work to finish. */
function forgetDrawings(
  table: Pick<EventTable, "finish">,
  lanes: Pick<Lanes, "drop">,
  running: ReadonlySet<Running>,
  isMeant: (event: InboundEvent) => boolean,
): InboundEvent[] {
  const isErased = (event: InboundEvent): boolean => isDrawing(event) && isMeant(event);
  const waiting = lanes.drop(isErased);
  table.finish(waiting);
  return [...waiting, ...findWork(running, isErased).flatMap(({ lane }) => lane.taken)];
}
