import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { createBreaker } from "../../src/gateway/breaker.ts";
import { GatewayError } from "../../src/gateway/errors.ts";
import { DEFAULT_LIMITS } from "../../src/gateway/limits.ts";
import { good, rateLimit, refusal, startFaultServer } from "../support/fault-server.ts";
import { connect, failureOf, ignoring, open, readAnswer, request } from "../support/gateway-client.ts";

const busy = refusal(503, "busy");
const down = new GatewayError("overloaded", "busy");

describe("a model that keeps failing", () => {
  test("while a model is paused, further calls fail at once and report the remaining time", async () => {
    const { url, received } = await startFaultServer(busy);
    const counts: number[] = [];
    const gateway = connect(url, {
      limits: { breakerFailures: 3, breakerMs: 60_000, breakerMaxMs: 60_000 },
      onPaused: (_name, count) => counts.push(count),
    });
    await failureOf(gateway.streamChat(request, open, ignoring));
    const failure = await failureOf(gateway.streamChat(request, open, ignoring));
    expect(failure).toMatchObject({ kind: "overloaded", status: 503 });
    expect(failure.retryAfterMs).toBeGreaterThan(50_000);
    expect(received).toHaveLength(3);
    expect(counts).toEqual([1]);
    const other = await failureOf(gateway.streamChat({ ...request, model: "other" }, open, ignoring));
    expect(other.message).not.toContain("several times in a row");
  });

  test("callers wait for a short pause, and then the model answers everyone", async () => {
    const { url, received } = await startFaultServer(busy, busy, busy, good);
    const gateway = connect(url, { limits: { breakerFailures: 3, breakerMs: 50 } });
    await failureOf(gateway.streamChat(request, open, ignoring));
    const answers = [1, 2, 3].map(() => readAnswer(gateway, request, open));
    for (const answer of answers) expect(await answer).toMatchObject({ text: "Hello", error: undefined });
    expect(received).toHaveLength(6);
  });

  test("the pause doubles with each further failure, up to the longest", async () => {
    const breaker = createBreaker({ ...DEFAULT_LIMITS, breakerFailures: 1, breakerMs: 20, breakerMaxMs: 50 });
    const waits: number[] = [];
    let probed: ReturnType<typeof breaker.read>;
    for (let time = 0; time < 4; time++) {
      breaker.failed("m", down, probed);
      waits.push(breaker.read("m")?.waitMs ?? 0);
      await sleep((breaker.read("m")?.waitMs ?? 0) + 1);
      probed = breaker.read("m");
      expect(breaker.claim("m")).toBe(true);
    }
    for (const [index, most] of [20, 40, 50, 50].entries()) {
      expect(waits[index]).toBeLessThanOrEqual(most);
      expect(waits[index]).toBeGreaterThan(most / 2);
    }
    breaker.succeeded("m", probed);
    expect(breaker.read("m")).toBeUndefined();
  });

  test("after the pause, only one call tries the model", async () => {
    const breaker = createBreaker({ ...DEFAULT_LIMITS, breakerFailures: 1, breakerMs: 1 });
    breaker.failed("m", down, undefined);
    await sleep(5);
    expect(breaker.read("m")?.waitMs).toBe(0);
    const claims = Array.from({ length: 10 }, () => breaker.claim("m"));
    expect(claims.filter(Boolean)).toHaveLength(1);
  });

  test("a model that answers between failures is not paused", () => {
    const breaker = createBreaker({ ...DEFAULT_LIMITS, breakerFailures: 3 });
    for (let time = 0; time < 10; time++) {
      breaker.failed("m", down, undefined);
      breaker.failed("m", down, undefined);
      breaker.succeeded("m", undefined);
    }
    expect(breaker.read("m")).toBeUndefined();
  });

  test("a model that rejects requests permanently is not paused, because it is reachable", async () => {
    const { url, received } = await startFaultServer(busy, busy, refusal(400, "no"));
    const gateway = connect(url, { limits: { breakerFailures: 3, attempts: 1 } });
    for (let time = 0; time < 5; time++) await failureOf(gateway.streamChat(request, open, ignoring));
    expect(received).toHaveLength(5);
  });
});

test("while the first gateway is paused, the second one answers at once", async () => {
  const [first, second] = [await startFaultServer(rateLimit({ "retry-after": "600" })), await startFaultServer(good)];
  const gateway = connect(first.url, { second: { baseUrl: second.url, apiKey: "key-of-the-second" } });
  for (let time = 0; time < 4; time++) {
    expect(await readAnswer(gateway, request, open)).toMatchObject({ text: "Hello", error: undefined });
  }
  expect(first.received).toHaveLength(1);
  expect(second.received).toHaveLength(4);
});

test("a pause after failures is shorter than a question waits, so the client tries every question", () => {
  expect(DEFAULT_LIMITS.breakerMaxMs).toBeLessThan(DEFAULT_LIMITS.maxRetryWaitMs);
});

test("the client sends questions after 429s without a wait, and they succeed as soon as the gateway answers", async () => {
  const limits = { attempts: 3, breakerFailures: 5, breakerMs: 20, breakerMaxMs: 100 };
  const busy = Array.from({ length: 7 }, () => rateLimit());
  const { url } = await startFaultServer(...busy, good);
  const gateway = connect(url, { limits });
  const texts = [];
  for (const _ of [1, 2, 3]) texts.push((await readAnswer(gateway, request, open)).text);
  expect(texts).toEqual(["", "", "Hello"]);
});
