import { describe, expect, test } from "vitest";
import { createClock } from "../../../lab/slack-sim/clock.ts";
import { DEFAULT_LIMITS, type Limits } from "../../../lab/slack-sim/limits.ts";
import { createRateLimiter } from "../../../lab/slack-sim/rate-limiter.ts";
import { callApi, createWebClient, errorOf } from "../../../lab/slack-sim/web-api.ts";
import { startSlack } from "../../support/slack.ts";

function limiter(limits: Partial<Limits> = {}) {
  const clock = createClock({ startMs: 1_000_000, isFrozen: true });
  const { take } = createRateLimiter({ ...DEFAULT_LIMITS, ...limits }, clock.now);
  const times = (calls: number, method: string, workspace = "T1", channel = "C1") =>
    Array.from({ length: calls }, () => take(method, workspace, channel));
  return { clock, take, times };
}

describe("rate limits of the Slack simulator", () => {
  test.each([
    ["chat.startStream", 20],
    ["chat.stopStream", 20],
    ["chat.update", 50],
    ["chat.appendStream", 100],
    ["conversations.replies", 50],
  ])("the method %s allows %i calls a minute, per workspace", (method, calls) => {
    const { take, times } = limiter();
    expect(times(calls, method)).toEqual(Array.from({ length: calls }, () => undefined));
    expect(take(method, "T1", "C2")).toBe(60);
    expect(take(method, "T2", "C1")).toBeUndefined();
  });

  test("a sliding window allows each call again a minute later, and a refused call does not count", () => {
    const { clock, take, times } = limiter();
    times(25, "chat.update");
    clock.advance(30_000);
    times(25, "chat.update");
    clock.advance(29_500);
    expect(times(3, "chat.update")).toEqual([1, 1, 1]);
    clock.advance(500);
    expect(times(25, "chat.update").every((waitS) => waitS === undefined)).toBe(true);
    expect(take("chat.update", "T1", "C1")).toBe(30);
  });

  test("a token bucket fills evenly", () => {
    const { clock, take, times } = limiter({ kind: "token-bucket" });
    times(50, "chat.update");
    expect(take("chat.update", "T1", "C1")).toBe(2);
    clock.advance(1_200);
    expect(times(2, "chat.update")).toEqual([undefined, 2]);
  });

  test("a channel allows a post per second after a short burst, and other channels are independent", () => {
    const { clock, times } = limiter();
    expect(times(3, "chat.postMessage")).toEqual([undefined, undefined, 1]);
    expect(times(1, "chat.postMessage", "T1", "C2")).toEqual([undefined]);
    clock.advance(1_000);
    expect(times(2, "chat.postMessage")).toEqual([undefined, 1]);
  });

  test("a commercial app reads one page a minute", () => {
    const { take } = limiter({ history: "commercial" });
    expect(take("conversations.replies", "T1", "C1")).toBeUndefined();
    expect(take("conversations.replies", "T1", "C1")).toBe(60);
  });

  test("a refusal is a 429 with whole seconds, without the remaining number, and is a violation", async () => {
    const slack = await startSlack({ limits: { perMinute: { "auth.test": 1 } } });
    await callApi(slack, "auth.test");
    const { status, headers, body } = await callApi(slack, "auth.test");
    expect({ status, body }).toEqual({ status: 429, body: { ok: false, error: "ratelimited" } });
    expect(headers.get("retry-after")).toMatch(/^\d+$/);
    expect([...headers.keys()].filter((name) => name.includes("remaining"))).toEqual([]);
    await expect(createWebClient(slack).auth.test()).rejects.toMatchObject({ retryAfter: 60 });
    expect(slack.violations.map(({ sentence }) => sentence)).toEqual([
      "auth.test was called too often in Acme; free again in 60 s.",
      "auth.test was called too often in Acme; free again in 60 s.",
    ]);
    slack.allow("rate-limited");
  });

  test.each(["ratelimited", "rate_limited"] as const)("a refusal can also be HTTP 200 with %s", async (refusal) => {
    const slack = await startSlack({ limits: { refusal, perMinute: { "auth.test": 1 } } });
    slack.allow("rate-limited");
    await callApi(slack, "auth.test");
    expect(await errorOf(slack, "auth.test")).toBe(refusal);
  });
});
