import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { z } from "zod";
import { claimShare, leaveShares, NO_SHARES, type Shares } from "../concurrency/shares.ts";
import type { SharedParts } from "../port/shares.ts";
import type { RedisConnection } from "./redis-connection.ts";
import { createStoredParser } from "./values.ts";

/** A process that has not reported for this long counts as stopped. */
const MEMBER_MS = 3_000;
const KEPT_MS = 60_000;
const COLLISION_MS = 10;

const CHANGE = `
if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1`;

const shares: z.ZodType<Shares> = z.object({
  members: z.record(z.string(), z.object({ until: z.number(), isLeaving: z.boolean() })),
  parts: z.array(z.object({ holder: z.string().exactOptional(), heir: z.string().exactOptional() })),
});

/** `now` is a clock that all processes share, in milliseconds. */
export function createSharedParts(
  connection: RedisConnection,
  place: string,
  now: () => number,
  log: Logger,
): SharedParts {
  const { client, run, backForMs } = connection;
  const parse = createStoredParser(shares, place, log);
  const id = randomUUID();

  async function change<T>(count: number, decide: (before: Shares) => { after: Shares; result: T }): Promise<T> {
    // Processes share parts only with processes that expect the same number of parts.
    const key = `${place}:${count}`;
    for (;;) {
      const known = (await run(() => client.get(key))) ?? "";
      const { after, result } = decide((known !== "" && parse(known)) || NO_SHARES);
      const given = [known, JSON.stringify(after), String(KEPT_MS)];
      if ((await run(() => client.eval(CHANGE, { keys: [key], arguments: given }))) === 1) return result;
      await sleep(COLLISION_MS * Math.random());
    }
  }

  return {
    claim: (given) =>
      change(given.count, (before) => {
        // For a while after a Redis outage, start no new parts, because processes first renew the parts that they have.
        const atOnce = backForMs() < MEMBER_MS ? 0 : given.atOnce;
        const { after, share } = claimShare(before, { ...given, atOnce, id, forMs: MEMBER_MS, now: now() });
        return { after, result: share };
      }),
    leave: (count) =>
      change(count, (before) => ({ after: leaveShares(before, id), result: undefined })).catch(() => {}),
    async takeTurn(name, everyMs) {
      const options = { condition: "NX", expiration: { type: "PX", value: everyMs } } as const;
      return (await run(() => client.set(`${place}:turn:${name}`, "1", options))) !== null;
    },
  };
}
