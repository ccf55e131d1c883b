import type { RedisConnection } from "../../store/redis-connection.ts";
import type { Bells, Ring } from "./bells.ts";
import { KEYS } from "./keys.ts";
import { HOLDERS_FIRST_MS, type RedisLanes } from "./lanes.ts";
import { type Look, type Places, strikeOff } from "./places.ts";

/** A bell is heard, and its lane taken, sooner than that. */
const UNHEARD_MS = 2_500;
/** Whichever process has swept, nobody does so again sooner than that. */
const SWEEP_MS = 900;
const MAX_RUNG_LANES = 500;

export interface SweepOptions {
  connection: RedisConnection;
  lanes: Pick<RedisLanes, "leaseMs" | "release">;
  places: Pick<Places, "look" | "dispatch">;
  bells: Pick<Bells, "leftBy">;
  now(): number;
  ring: Ring;
}

/** Finds what nobody would come back to. */
export interface Sweep {
  /**
   * Lanes whose bell was never rung, or rang for nothing, and places that were given to nobody or to a process that died
   * and left nothing to do. Once in a while, over all processes.
   */
  ringUnheard(): Promise<void>;
  /** Rings, once, for the lanes of each process that has gone. */
  takeFromTheGone(): Promise<void>;
}

export function createSweep({ connection, lanes, places, bells, now, ring }: SweepOptions): Sweep {
  const { client, run, backForMs } = connection;

  /** Whoever worked on a lane when it died hears its bell still, for as long as BullMQ believes; so it rings elsewhere. */
  async function takeFrom(id: string, { active, workers }: Look): Promise<void> {
    const had = [...active].flatMap(([laneId, { worker }]) => (worker === id ? [laneId] : []));
    const living = [...workers].flatMap(([worker, own]) => (own > 0 ? [worker] : []));
    const lost = new Set([...had, ...(await bells.leftBy(id))]);
    for (const [index, laneId] of [...lost].entries()) await ring(laneId, living[index % living.length]);
  }

  async function takeFromTheGone(): Promise<void> {
    if (backForMs() < HOLDERS_FIRST_MS) return;
    const gone = await strikeOff(connection, now());
    if (gone.length === 0) return;
    const look = await places.look();
    for (const id of gone) await takeFrom(id, look);
  }

  async function ringUnheard(): Promise<void> {
    const options = { condition: "NX", expiration: { type: "PX", value: SWEEP_MS } } as const;
    if ((await run(() => client.set(KEYS.sweep, "1", options))) === null) return;
    const { active, queued, workers } = await places.look();
    const unheard = await run(() =>
      client.zRangeByScore(KEYS.lanes, "-inf", now() - UNHEARD_MS, { LIMIT: { offset: 0, count: MAX_RUNG_LANES } }),
    );
    for (const laneId of unheard) {
      // The place alone does not say so: whoever has it may not know that Redis gave it, where the answer was lost.
      const leaseMs = await lanes.leaseMs(laneId);
      // Looked at again when a lease of which its process does not know either has ended.
      const score = now() - (leaseMs > 0 ? UNHEARD_MS - leaseMs : 0);
      await run(() => client.zAdd(KEYS.lanes, { value: laneId, score }, { condition: "XX" }));
      // Its bell rings when its place is given to it.
      if (!queued.has(laneId) && leaseMs === 0) await ring(laneId);
    }
    for (const [laneId, { worker = "" }] of active) {
      if (workers.has(worker)) continue;
      const isEmpty = (await run(() => client.lLen(KEYS.lane(laneId)))) === 0;
      const owner = await run(() => client.get(KEYS.owner(laneId)));
      if (isEmpty) await lanes.release(laneId, owner ?? undefined);
    }
    if (queued.size > 0) await places.dispatch();
  }

  return { ringUnheard, takeFromTheGone };
}
