import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { FencedError } from "../../concurrency/fence.ts";
import type { InboundEvent } from "../../port/events.ts";
import { isStoreOutage } from "../../store/outage.ts";
import type { Work } from "../admission.ts";
import { type Failures, judgeFailure } from "../attempts.ts";
import type { Worker } from "../queue.ts";
import type { RedisLanes } from "./lanes.ts";
import type { Lease } from "./leases.ts";
import type { Run } from "./run.ts";

const FINISH_AGAIN_MS = 200;

/** The work on a lane, once (no turn of `src/turn`), and the right to it. */
export interface LaneTurn {
  laneId: string;
  lease: Lease;
  worker: Worker;
  run: Run;
  work: Work;
  token: string;
  failures: Failures;
  /** The work may have been begun before: its process died, or it failed. */
  isTakenUp: boolean;
}

export interface EndingsOptions {
  lanes: Pick<RedisLanes, "finish" | "saveFailures" | "noteGivenUp">;
  retryMs: readonly [first: number, longest: number];
  log: Logger;
}

/** The ways a turn of a lane ends. Each rejects with a `FencedError` when another process has taken the lane. */
export function createEndings({ lanes, retryMs, log }: EndingsOptions) {
  /** Takes finished events off the lane. While the store is away only this is tried again, not the work. */
  async function finish({ laneId, run, token }: LaneTurn, done: readonly InboundEvent[]): Promise<void> {
    for (;;) {
      try {
        if (await lanes.finish(laneId, token, run.find(done))) return;
        throw new FencedError("Another process works on this lane.");
      } catch (error) {
        if (!isStoreOutage(error)) throw error;
        log.warn({ err: error, laneId }, "finished events could not be taken off their lane; this is tried again");
        await Promise.race([sleep(FINISH_AGAIN_MS), run.abandoned]);
      }
    }
  }

  /** Resolves to how long to wait before the next attempt. */
  async function fail(turn: LaneTurn, error: unknown): Promise<number> {
    const { laneId, run } = turn;
    const { next, pauseMs, ...after } = judgeFailure(turn.failures, error, false, retryMs);
    const { failures } = after;
    if (next === "drop") {
      log.error({ err: error, laneId }, "a person could not be told that their work is given up");
      await finish(turn, run.taken);
    } else if (next === "give-up") {
      log.error({ err: error, laneId, failures }, "work failed again and again and is given up");
      await giveUp(turn, after, error instanceof Error ? error.name : "It failed.");
    } else {
      log.warn({ err: error, laneId, failures, pauseMs }, "work failed and will be tried again");
      await lanes.saveFailures(laneId, after);
    }
    return pauseMs;
  }

  async function giveUp(turn: LaneTurn, failures: Failures, reason: string): Promise<void> {
    turn.failures = failures;
    await lanes.saveFailures(turn.laneId, failures);
    const [first] = turn.run.taken;
    if (first === undefined) return;
    await lanes.noteGivenUp({ key: first.key, kind: first.kind, laneId: turn.laneId, at: Date.now(), reason });
  }

  return { finish, fail, giveUp };
}
