import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { isCut } from "../../concurrency/cut.ts";
import { FencedError, withFence } from "../../concurrency/fence.ts";
import type { InboundEvent } from "../../port/events.ts";
import type { Work } from "../admission.ts";
import { giveUpWork, isDeadly, SUSPECT_DEATHS } from "../attempts.ts";
import { isErasedWith, toPerson, toWork } from "../event-lane.ts";
import type { Worker } from "../queue.ts";
import type { Bell, Ring } from "./bells.ts";
import { createEndings, type LaneTurn } from "./endings.ts";
import { KEYS } from "./keys.ts";
import type { LaneBudgets } from "./lane-budgets.ts";
import { HOLDERS_FIRST_MS, type RedisLanes } from "./lanes.ts";
import type { Lease, Leases } from "./leases.ts";
import type { Places } from "./places.ts";
import { createRun, type Run } from "./run.ts";

export interface DrainOptions {
  lanes: RedisLanes;
  places: Pick<Places, "admit" | "dispatch" | "workerOf">;
  leases: Pick<Leases, "hold">;
  /** Milliseconds since Redis came back after it had been away. */
  backForMs(): number;
  ring: Ring;
  budgets: LaneBudgets;
  /** The work under way by its lane; this module adds and removes it. */
  running: Map<string, Run>;
  workerId: string;
  retryMs: readonly [first: number, longest: number];
  /** Longest that work may take to end once its lane is lost. */
  cutMs: number;
  log: Logger;
  isClosing(): boolean;
}

const GIVE_BACK_MS = 1_000;
/** A lane that another process has just taken is looked at again after so long. */
const TAKEN_AGAIN_MS = 500;

/** Works on a lane until nothing waits in it, it has to wait for a place, or this process closes. */
export type Drain = (bell: Bell, worker: Worker) => Promise<void>;

/** The next step at once, after a pause, or never: somebody rings the bell again. */
type Next = { afterMs: number } | "none";

const AT_ONCE: Next = { afterMs: 0 };

export function createDrain(options: DrainOptions): Drain {
  const { lanes, places, leases, budgets, ring, running, isClosing, log } = options;
  const { finish, fail, giveUp } = createEndings(options);
  const giveBack = createGiveBack(options);

  return async ({ laneId, ...bell }, worker) => {
    while (!isClosing()) {
      const next = await step(laneId, worker);
      if (next === "none") return;
      if (next.afterMs > 0) await bell.snooze(next.afterMs);
    }
    // Another process goes on at once, or the next one to start.
    await ring(laneId);
  };

  /** Finds out whether the lane may be worked on here and now. */
  async function step(laneId: string, worker: Worker): Promise<Next> {
    const head = await lanes.head(laneId);
    if (head === undefined) return (await lanes.release(laneId, undefined)) ? AT_ONCE : "none";
    // The sweep rings again, and a process of a newer version may hear it.
    if (head === "unreadable") return "none";
    const returningMs = head.isOwned ? HOLDERS_FIRST_MS - options.backForMs() : 0;
    const freeInMs = Math.max(head.leaseMs, returningMs);
    const budget = budgets.of(head.event);
    if (freeInMs > 0) {
      // Its holder looks again when the work has ended, sooner than anybody who waits.
      const holder = budget === undefined ? undefined : await places.workerOf(laneId);
      if (holder === undefined || holder === options.workerId) return { afterMs: Math.ceil(freeInMs) };
      await ring(laneId, holder);
      return "none";
    }
    const isSuspect = head.begun >= SUSPECT_DEATHS;
    const work = { ...toWork(head.event), isSuspect, ...(budget !== undefined && { budget }) };
    const admission = await places.admit(laneId, work);
    if (typeof admission === "object") {
      await ring(laneId, admission.elsewhere);
      return "none";
    }
    if (admission !== "admitted") {
      if (admission === "queued") worker.onWaiting?.(head.event);
      return "none";
    }
    return takeLane(laneId, worker, work);
  }

  /** Takes a lane that has a place, works on it once, and gives lane and place back. */
  async function takeLane(laneId: string, worker: Worker, work: Work): Promise<Next> {
    const run = createRun(lanes);
    // From before the lane is read, so that nothing is missed.
    running.set(laneId, run);
    let token: string | undefined;
    let lease: Lease | undefined;
    const closeBudget = await budgets.open(work.budget);
    try {
      const from = performance.now();
      const lane = await lanes.take(laneId);
      // Whoever has it by now is not to be disturbed.
      if (lane === undefined) return { afterMs: TAKEN_AGAIN_MS };
      token = lane.token;
      lease = leases.hold(laneId, token, from);
      run.read(lane.waiting);
      if (lane.waiting.length === 0) return AT_ONCE;
      const { failures } = lane;
      const isTakenUp = lane.wasOwned || failures.failures > 0;
      const turn = { laneId, lease, worker, run, work, token, failures, isTakenUp };
      return await workOnChosen(turn, worker.take(lane.waiting.map(({ event }) => event)));
    } finally {
      running.delete(laneId);
      closeBudget();
      lease?.end();
      await giveBack(laneId, token);
    }
  }

  async function workOnChosen(turn: LaneTurn, taken: readonly InboundEvent[]): Promise<Next> {
    const { laneId, run, work, token } = turn;
    const people = taken.filter(isErasedWith).map(({ reply, author }) => toPerson(reply.platform, author.id));
    const active = { work, worker: options.workerId, people };
    const begun = await lanes.begin(laneId, token, run.find(taken), active);
    if (begun === "fenced") throw new FencedError("Another process works on this lane.");
    if (begun === "changed") return AT_ONCE;
    const { deaths } = begun;
    turn.isTakenUp ||= begun.wasBegun;
    run.choose(taken);
    run.markCounted();
    if (isClosing()) await run.uncount();
    if (isDeadly(deaths) && !turn.failures.isGivenUp) {
      log.error({ laneId, deaths }, "processes died again and again during this work, which is given up");
      await giveUp(turn, { ...turn.failures, isGivenUp: true }, `${deaths} processes died during this work.`);
    }
    try {
      const done = await callWorker(turn, deaths, options.cutMs);
      // Nothing of a person who is erased is handed out again.
      await finish(turn, isCut(run.controller.signal, "forgotten") ? taken : done);
      return AT_ONCE;
    } catch (error) {
      if (turn.lease.signal.aborted) throw error;
      await run.uncount();
      if (isCut(run.controller.signal, "forgotten")) await finish(turn, taken);
      else if (!isCut(run.controller.signal, "shutdown")) return { afterMs: await fail(turn, error) };
      else log.info({ laneId }, "work was cut; another process goes on with it, or the next start");
      return AT_ONCE;
    }
  }
}

/** Gives lane and place back, again until Redis takes them: those of a process that lives are given back by nobody else. */
function createGiveBack({ lanes, places, ring, log }: DrainOptions) {
  async function giveBack(laneId: string, token: string | undefined): Promise<void> {
    try {
      await lanes.release(laneId, token);
      await places.dispatch();
    } catch (err) {
      log.warn({ err, laneId }, "a lane could not be given back; this is tried again");
      void giveBackLater(laneId, token);
    }
  }

  async function giveBackLater(laneId: string, token: string | undefined): Promise<void> {
    await sleep(GIVE_BACK_MS, undefined, { ref: false });
    await giveBack(laneId, token);
    await ring(laneId);
  }

  return giveBack;
}

async function callWorker(
  { laneId, lease, worker, run, token, failures, isTakenUp }: LaneTurn,
  deaths: number,
  cutMs: number,
): Promise<readonly InboundEvent[]> {
  const signal = AbortSignal.any([run.controller.signal, lease.signal]);
  const fence = { key: KEYS.owner(laneId), value: token, check: lease.check, isTakenUp };
  const { taken } = run;
  const ended = withFence(fence, () =>
    failures.isGivenUp ? giveUpWork(worker, taken, deaths, signal) : worker.work([...taken], signal),
  );
  for (const event of run.begin()) worker.onAccepted(event);
  const cut = () => void setTimeout(run.abandon, cutMs).unref();
  lease.signal.addEventListener("abort", cut, { once: true });
  run.abandoned.catch(lease.abandon);
  try {
    return await Promise.race([ended, run.abandoned]);
  } finally {
    lease.signal.removeEventListener("abort", cut);
    // An abandoned run is fenced, and nobody asks for its result.
    ended.catch(() => {});
  }
}
