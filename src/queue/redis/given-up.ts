import type { InboundEvent } from "../../port/events.ts";
import type { RedisConnection } from "../../store/redis-connection.ts";
import { KEYS } from "./keys.ts";

const MAX_EVENTS = 100;

/** An event that was given up, for the operator. Holds nothing that a person said. */
export interface GivenUp {
  key: string;
  kind: InboundEvent["kind"];
  laneId: string;
  /** Unix milliseconds. */
  at: number;
  reason: string;
}

export async function noteGivenUp(client: RedisConnection["client"], event: GivenUp): Promise<void> {
  await client
    .multi()
    .lPush(KEYS.givenUp, JSON.stringify(event))
    .lTrim(KEYS.givenUp, 0, MAX_EVENTS - 1)
    .exec();
}

/** Newest first. */
export async function readGivenUp(client: RedisConnection["client"]): Promise<GivenUp[]> {
  return (await client.lRange(KEYS.givenUp, 0, -1)).map((text) => JSON.parse(text) as GivenUp);
}
