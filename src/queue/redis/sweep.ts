import type { RedisConnection } from "../../store/redis-connection.ts";
import type { Bells } from "./bells.ts";
import { KEYS } from "./keys.ts";
import type { RedisLanes } from "./lanes.ts";
import type { Look, Places } from "./places.ts";

/** A bell is heard, and its lane taken, sooner than that. */
const UNHEARD_MS = 2_500;
/** One process sweeps at a time. */
const SWEEP_MS = 900;
const MAX_RUNG = 500;

export interface SweepOptions {
  connection: RedisConnection;
  lanes: Pick<RedisLanes, "release">;
  places: Pick<Places, "look" | "dispatch">;
  bells: Pick<Bells, "leftBy">;
  now(): number;
  ring(laneId: string): Promise<void>;
}

/**
 * Finds what nobody would come back to: lanes whose bell was never rung, or rang for nothing, and places that were given
 * to nobody or to a process that died and left nothing to do.
 */
export function createSweep({ connection: { client, run }, lanes, places, bells, now, ring }: SweepOptions) {
  /** Rings for lanes of processes that are gone: nobody else would hear of what they had, or had rung alone. */
  async function takeFromTheGone(active: Look["active"]): Promise<void> {
    for (const member of await run(() => client.zRangeByScore(KEYS.workers, "-inf", now()))) {
      const [id] = JSON.parse(member) as [string];
      const had = [...active].flatMap(([laneId, { worker }]) => (worker === id ? [laneId] : []));
      for (const laneId of new Set([...had, ...(await bells.leftBy(id))])) await ring(laneId);
      await run(() => client.zRem(KEYS.workers, member));
    }
  }

  return async (): Promise<void> => {
    const options = { condition: "NX", expiration: { type: "PX", value: SWEEP_MS } } as const;
    if ((await run(() => client.set(KEYS.sweep, "1", options))) === null) return;
    const { active, held, workers } = await places.look();
    await takeFromTheGone(active);
    const isAtWork = (laneId: string) => workers.has(active.get(laneId)?.worker ?? "");
    const unheard = await run(() =>
      client.zRangeByScore(KEYS.lanes, "-inf", now() - UNHEARD_MS, { LIMIT: { offset: 0, count: MAX_RUNG } }),
    );
    for (const laneId of unheard) {
      await run(() => client.zAdd(KEYS.lanes, { value: laneId, score: now() }, { condition: "XX" }));
      // Its bell rings when its place is given to it.
      if (!held.has(laneId) && !isAtWork(laneId)) await ring(laneId);
    }
    for (const laneId of active.keys()) {
      if (isAtWork(laneId)) continue;
      const isEmpty = (await run(() => client.lLen(KEYS.lane(laneId)))) === 0;
      const owner = await run(() => client.get(KEYS.owner(laneId)));
      if (isEmpty) await lanes.release(laneId, owner ?? undefined);
    }
    if (held.size > 0) await places.dispatch();
  };
}
