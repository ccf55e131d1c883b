import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { toldPause } from "../../src/app/shared.ts";
import type { GatewayLimits } from "../../src/gateway/limits.ts";
import { createBoard } from "../../src/store/redis-board.ts";
import { connectToRedis } from "../../src/store/redis-connection.ts";
import { eventually } from "../support/eventually.ts";
import { type Answer, events, rateLimit, refusal, startFaultServer, stream } from "../support/fault-server.ts";
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
  async function startOne(url: string, by: string, limits: Partial<GatewayLimits> = {}) {
    const connection = connectToRedis(redis.url, silent);
    const board = createBoard({ connection, schema: toldPause, place: PLACE, by, now: Date.now, log: silent });
    onTestFinished(async () => {
      board.close();
      await connection.close();
    });
    const listening = Promise.withResolvers<void>();
    const pauses = {
      tell: board.tell,
      claim: board.claim,
      listen: (onTold: Parameters<typeof board.listen>[0]) => board.listen(onTold).then(listening.resolve),
    };
    const gateway = connect(url, { pausesOf: () => pauses, limits });
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
      (await failureOf(gateway.streamChat(request, open, ignoring))).message.includes("asked for a pause");
    expect(await isHeld(late)).toBe(true);
    await eventually(() => isHeld(other)).toBe(true);
    expect(received).toHaveLength(1);

    expect(await readAnswer(other.gateway, request, open, { mustAsk: true })).toMatchObject({ text: "Hello" });
    await eventually(told).toBe(0);
    for (const { gateway } of [one, late]) {
      await eventually(async () => (await readAnswer(gateway, request, open)).text).toBe("Hello");
    }
  });

  test("is tried by one call of one process alone when it is over, and the others follow that", async () => {
    const probe = Promise.withResolvers<void>();
    // Everybody has to know of it while it lasts.
    const busy = rateLimit({ "retry-after": "2" });
    const held: Answer = async (response) => {
      response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
      await probe.promise;
      response.end(stream("Hello"));
    };
    const { url, received } = await startFaultServer(busy, held, events(stream("Hello")));
    const all = await Promise.all(["one", "two", "three"].map((by) => startOne(url, by, { attempts: 1 })));
    const [{ gateway, connection }] = all as [(typeof all)[0]];
    await failureOf(gateway.streamChat(request, open, ignoring));
    await eventually(() => connection.client.hLen(PLACE)).toBe(1);
    await eventually(async () => (await connection.client.pubSubNumSub([PLACE]))[PLACE]).toBe(3);
    const answers = all.flatMap(({ gateway }) => [1, 2].map(() => readAnswer(gateway, request, open)));
    await eventually(() => received.length).toBe(2);
    const claims = () => connection.client.keys(`${PLACE}:claims:*`);
    await eventually(async () => (await claims()).length).toBe(1);
    expect(received).toHaveLength(2);
    probe.resolve();
    for (const answer of answers) expect(await answer).toMatchObject({ text: "Hello", error: undefined });
    expect(received).toHaveLength(7);
  });

  test("is opened for all by failures that one of them met", async () => {
    const { url, received } = await startFaultServer(refusal(503, "busy"));
    const limits = { breakerFailures: 3, breakerMs: 60_000, breakerMaxMs: 60_000 };
    const [one, other] = [await startOne(url, "one", limits), await startOne(url, "other", limits)];
    await failureOf(one.gateway.streamChat(request, open, ignoring));
    const failure = async () => (await failureOf(other.gateway.streamChat(request, open, ignoring))).message;
    await eventually(failure).toContain("failed several times in a row");
    const asked = received.length;
    await failure();
    expect(received).toHaveLength(asked);
  });
});
