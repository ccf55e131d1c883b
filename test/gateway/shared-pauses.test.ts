import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import type { ToldPause } from "../../src/gateway/retry.ts";
import { createBoard } from "../../src/store/redis-board.ts";
import { connectToRedis } from "../../src/store/redis-connection.ts";
import { eventually } from "../support/eventually.ts";
import { events, rateLimit, startFaultServer, stream } from "../support/fault-server.ts";
import { connect, failureOf, ignoring, open, readAnswer, request } from "../support/gateway-client.ts";
import { silent } from "../support/log.ts";
import { isRedisMissing, type RedisServer, startRedis } from "../support/redis.ts";

const PLACE = "palaver:gateway:pauses";

describe.skipIf(isRedisMissing)("a pause that a model asks for (needs redis-server)", () => {
  let redis: RedisServer;
  beforeEach(async () => {
    redis = await startRedis();
    return () => redis.stop();
  });

  /** The gateway of a process of its own. */
  async function startOne(url: string, by: string) {
    const connection = connectToRedis(redis.url, silent);
    const board = createBoard<ToldPause>({ connection, place: PLACE, by, now: Date.now, log: silent });
    onTestFinished(async () => {
      board.close();
      await connection.close();
    });
    const listening = Promise.withResolvers<void>();
    const pauses = {
      tell: board.tell,
      listen: (onTold: Parameters<typeof board.listen>[0]) => board.listen(onTold).then(listening.resolve),
    };
    const gateway = connect(url, { pauses });
    await listening.promise;
    return { gateway, connection };
  }

  test("is kept by all processes, also by one that starts later, and over for all when it is over for one", async () => {
    const { url, received } = await startFaultServer(rateLimit({ "retry-after": "600" }), events(stream("Hello")));
    const [one, other] = [await startOne(url, "one"), await startOne(url, "other")];
    await failureOf(one.gateway.streamChat(request, open, ignoring));
    const told = () => one.connection.client.hLen(PLACE);
    await eventually(told).toBe(1);
    const late = await startOne(url, "late");
    const isHeld = async ({ gateway }: typeof one) =>
      (await failureOf(gateway.streamChat(request, open, ignoring))).message.includes("asked to wait");
    expect(await isHeld(late)).toBe(true);
    await eventually(() => isHeld(other)).toBe(true);
    expect(received).toHaveLength(1);

    expect(await readAnswer(other.gateway, request, open, { mustAsk: true })).toMatchObject({ text: "Hello" });
    await eventually(told).toBe(0);
    for (const { gateway } of [one, late]) {
      await eventually(async () => (await readAnswer(gateway, request, open)).text).toBe("Hello");
    }
  });
});
