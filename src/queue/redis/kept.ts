import type { InboundEvent } from "../../port/events.ts";
import type { RedisConnection } from "../../store/redis-connection.ts";
import { KEYS } from "./keys.ts";

const MAX_KEPT_EVENTS = 100;

/** An event that was given up, for the operator. Holds nothing that a person said. */
export interface Kept {
  key: string;
  kind: InboundEvent["kind"];
  laneId: string;
  /** Unix milliseconds. */
  at: number;
  reason: string;
}

export async function keep(client: RedisConnection["client"], kept: Kept): Promise<void> {
  await client
    .multi()
    .lPush(KEYS.kept, JSON.stringify(kept))
    .lTrim(KEYS.kept, 0, MAX_KEPT_EVENTS - 1)
    .exec();
}

/** Newest first. */
export async function readKept(client: RedisConnection["client"]): Promise<Kept[]> {
  return (await client.lRange(KEYS.kept, 0, -1)).map((text) => JSON.parse(text) as Kept);
}
