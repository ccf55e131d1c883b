import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { abortWith, isAborted } from "../concurrency/abort.ts";
import type { InboundEvent } from "../port/events.ts";
import { FencedError, type Work } from "../port/right.ts";
import { giveUpWork, isDeadly, judgeFailure } from "./attempts.ts";
import type { Entry, LaneRight, Start } from "./journal.ts";
import type { Lane, Lanes } from "./lanes.ts";
import type { Worker } from "./queue.ts";

/**
 * How long to wait before retrying a lane on which another process still works. The wait ends earlier if that process
 * reports that its work has ended.
 */
const KEPT_RETRY_MS = 1_000;

export interface Run {
  readonly lane: Lane;
  readonly controller: AbortController;
  readonly abandoned: PromiseWithResolvers<never>;
  right?: LaneRight;
  /** Events that arrived before the worker was called. Undefined after the call. */
  missed: InboundEvent[] | undefined;
  /** True if this process gave the partition away. The work then finishes here under the lane's own right. */
  isKept: boolean;
  ended: Promise<void>;
  /** The worker's promise. If the run is abandoned, this promise can settle after the run has ended. */
  working: Promise<unknown>;
}

export interface LaneWorkOptions {
  lanes: Lanes;
  log: Logger;
  /** The first and the longest pause before a retry. The pause doubles with each failure. */
  retryMs: readonly [first: number, longest: number];
  /** Called when a lane can start again after a pause. */
  onReady(): void;
}

export interface LaneWork {
  /** Does the work for a lane's next entries, and settles the finished ones. Never rejects. */
  perform(run: Run, worker: Worker): Promise<void>;
  wake(lane: Lane): void;
}

export function createRun(lane: Lane): Run {
  const abandoned = Promise.withResolvers<never>();
  abandoned.promise.catch(() => {});
  const controller = new AbortController();
  return {
    lane,
    controller,
    abandoned,
    missed: [],
    isKept: false,
    ended: Promise.resolve(),
    working: Promise.resolve(),
  };
}

/** Stops waiting for a run's work, and forbids the work to write. */
export function abandon(run: Run): void {
  run.right?.revoke();
  run.abandoned.reject(new Error("The work did not finish in time."));
}

export function createLaneWork({ lanes, log, retryMs, onReady }: LaneWorkOptions): LaneWork {
  const isHere = ({ source, partition }: Lane) => source.partitions.has(partition);

  async function perform(run: Run, worker: Worker): Promise<void> {
    const { lane, controller } = run;
    const { signal } = controller;
    try {
      const chosen = worker.take(lane.waiting.map(({ event }) => event));
      lane.taken = lane.waiting.filter(({ event }) => chosen.includes(event));
      const start = await lane.source.journal.begin(lane, lane.taken);
      if (start.type !== "started") return putBack(lane, start);
      run.right = start.right;
      if (signal.aborted) throw new Error("The work was aborted before it started.");
      if (isDeadly(start.deaths) && !lane.isGivenUp) {
        log.error(
          { laneId: lane.id, deaths: start.deaths },
          "the process died several times during this work; it is given up",
        );
        giveUp(lane, `${start.deaths} processes died during this work.`);
      }
      const done = await callWorker(run, worker, start);
      await settle(run, isAborted(signal, "forgotten") ? lane.taken : toEntries(lane, done));
    } catch (error) {
      await fail(run, error);
    }
  }

  function putBack(lane: Lane, start: Exclude<Start, { type: "started" }>): void {
    lane.taken = [];
    if (start.type === "gone") end(lane, start.entries);
    else pause(lane, KEPT_RETRY_MS);
  }

  /**
   * Removes finished entries from the journal. During an outage, retries only this step and does not repeat the work.
   */
  async function settle({ lane, right, abandoned }: Run, done: readonly Entry[]): Promise<void> {
    for (let attempt = 0; ; attempt++) {
      try {
        await right?.settle(done);
        return end(lane, done);
      } catch (error) {
        if (error instanceof FencedError) throw error;
        log.warn({ err: error, laneId: lane.id }, "finished work could not be stored as finished; retrying");
        const pauseMs = Math.min(retryMs[0] * 2 ** attempt, retryMs[1]);
        await Promise.race([sleep(pauseMs, undefined, { ref: false }), abandoned.promise]);
      }
    }
  }

  async function settleOrPause(run: Run): Promise<void> {
    await settle(run, run.lane.taken).catch(() => pause(run.lane, retryMs[0]));
  }

  async function fail(run: Run, error: unknown): Promise<void> {
    const { lane, right, controller } = run;
    const [{ signal }, laneId] = [controller, lane.id];
    if (isAborted(signal, "lost")) return end(lane, []);
    if (isAborted(signal, "forgotten")) return settleOrPause(run);
    await right?.uncount().catch((err: unknown) => log.warn({ err, laneId }, "the end of work could not be stored"));
    if (isAborted(signal, "shutdown")) return log.info({ laneId }, "work was aborted; the next start resumes it");
    if (!isHere(lane)) return lanes.remove(lane);
    const { next, pauseMs, ...after } = judgeFailure(lane, error, retryMs);
    const { failures } = Object.assign(lane, after);
    if (next === "drop") {
      log.error({ err: error, laneId }, "work was given up, and its author could not be notified");
      return settleOrPause(run);
    }
    if (next === "again") {
      log.warn({ err: error, laneId, failures, pauseMs }, "work failed and will be retried");
    } else {
      log.error({ err: error, laneId, failures }, "work failed several times and is given up");
      giveUp(lane, error instanceof Error ? error.name : "unknown error");
    }
    pause(lane, pauseMs);
  }

  function giveUp(lane: Lane, reason: string): void {
    lane.isGivenUp = true;
    const [{ event } = {}] = lane.taken;
    if (event === undefined) return;
    lane.source.journal
      .noteGivenUp({ key: event.key, kind: event.kind, laneId: lane.id, at: Date.now(), reason })
      .catch((err: unknown) => log.warn({ err, laneId: lane.id }, "given-up work could not be stored as given up"));
  }

  /**
   * Lets the lane start again after `pauseMs`. Later events in the lane wait for the failed one, to keep their order.
   */
  function pause(lane: Lane, pauseMs: number): void {
    if (!isHere(lane)) return lanes.remove(lane);
    lane.state = "pausing";
    lane.taken = [];
    setTimeout(wake, pauseMs, lane).unref();
  }

  function wake(lane: Lane): void {
    if (!lanes.has(lane) || lane.state !== "pausing") return;
    lanes.resume(lane);
    onReady();
  }

  /**
   * Removes finished entries from the lane. Drops the whole lane if this process no longer owns its partition, because
   * the owner handles the remaining entries.
   */
  function end(lane: Lane, done: readonly Entry[]): void {
    if (!lanes.has(lane)) return;
    lanes.finish(lane, done);
    if (!isHere(lane)) lanes.remove(lane);
  }

  return { perform, wake };
}

function callWorker(
  run: Run,
  worker: Worker,
  { right, deaths }: Extract<Start, { type: "started" }>,
): Promise<readonly InboundEvent[]> {
  const { lane, controller, abandoned } = run;
  const events = lane.taken.map(({ event }) => event);
  const work: Work = { signal: controller.signal, right: right.held };
  const working = lane.isGivenUp ? giveUpWork(worker, events, deaths, work) : worker.work(events, work);
  const missed = run.missed ?? [];
  run.missed = undefined;
  for (const event of missed) worker.onAccepted(event);
  run.working = working;
  // No one waits for the worker's promise after the work was abandoned.
  working.catch(() => {});
  return Promise.race([working, abandoned.promise]);
}

function toEntries({ waiting }: Lane, events: readonly InboundEvent[]): Entry[] {
  const keys = new Set(events.map(({ key }) => key));
  return waiting.filter(({ event }) => keys.has(event.key));
}

/** Aborts the running work on matching events. Resolves when that work has ended. */
export async function cutWork(runs: Iterable<Run>, isErased: (event: InboundEvent) => boolean): Promise<void> {
  const theirs = [...runs].filter(({ lane }) => lane.taken.some(({ event }) => isErased(event)));
  for (const { controller } of theirs) abortWith(controller, "forgotten");
  await Promise.all(theirs.map(({ ended }) => ended));
}
