import { z } from "zod";
import type { RedisConnection } from "../store/redis-connection.ts";
import { parseStored } from "../store/values.ts";

export const GIVEN_UP_KEY = "palaver:queue:given-up";
const MAX_EVENTS = 100;

const givenUp = z.object({
  key: z.string(),
  kind: z.string(),
  laneId: z.string(),
  /** When the queue gave the work up, in Unix milliseconds. */
  at: z.int().max(8.64e15),
  reason: z.string(),
});

/** An event whose work the queue gave up, listed for the operator. Contains none of a person's words. */
export type GivenUp = z.infer<typeof givenUp>;

export async function noteGivenUp(client: RedisConnection["client"], event: GivenUp): Promise<void> {
  await client
    .multi()
    .lPush(GIVEN_UP_KEY, JSON.stringify(event))
    .lTrim(GIVEN_UP_KEY, 0, MAX_EVENTS - 1)
    .exec();
}

/** Returns the newest event first. */
export async function readGivenUp(client: RedisConnection["client"]): Promise<GivenUp[]> {
  return (await client.lRange(GIVEN_UP_KEY, 0, -1)).flatMap((text) => parseStored(givenUp, text) ?? []);
}
