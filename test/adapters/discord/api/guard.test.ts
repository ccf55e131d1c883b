import { describe, expect, test } from "vitest";
import { ApiError, type ApiErrorOptions } from "../../../../adapters/discord/api/error.ts";
import { createGlobalLimit, createGuard } from "../../../../adapters/discord/api/guard.ts";

function start() {
  let nowMs = 1_000_000;
  const guard = createGuard(() => nowMs);
  const refuse = (what: string, status: number, code = 0, more: Partial<ApiErrorOptions> = {}, hasFiles = false) =>
    guard.note({ what, hasFiles }, new ApiError("refused", { status, code, ...more }));
  return { guard, refuse, pass: (ms: number) => void (nowMs += ms) };
}

describe("the guard against refused calls to Discord", () => {
  test("the guard does not repeat a forbidden call at once, and lets every other call through", () => {
    const { guard, refuse, pass } = start();
    refuse("POST /channels/1/messages", 403, 50013);
    expect(() => guard.check({ what: "POST /channels/1/messages" })).toThrow("refused");
    guard.check({ what: "POST /channels/2/messages" });
    guard.check({ what: "GET /channels/1/messages" });
    refuse("POST /channels/2/messages", 403, 50013, {}, true);
    guard.check({ what: "POST /channels/2/messages" });
    expect(
      () => guard.check({ what: "POST /channels/2/messages", hasFiles: true }),
      "a bot may write that may attach no files",
    ).toThrow();
    pass(30_001);
    guard.check({ what: "POST /channels/1/messages" });
  });

  test("the guard stops all calls well before Discord blocks the address, until the window ends", () => {
    const { guard, refuse, pass } = start();
    for (let count = 0; count < 4_999; count++) refuse("x", 401);
    guard.check({ what: "y" });
    refuse("x", 429);
    expect(() => guard.check({ what: "y" })).toThrow(/for a while/);
    pass(10 * 60_000);
    guard.check({ what: "y" });
  });

  test("the guard does not count refusals by a limit that other users of the address exhausted", () => {
    const { guard, refuse } = start();
    for (let count = 0; count < 6_000; count++) refuse("x", 429, 0, { scope: "shared" });
    guard.check({ what: "y" });
  });

  test("the guard refuses calls as long as Discord asks, for one kind of call or for all calls", () => {
    const { guard, refuse, pass } = start();
    refuse("x", 429, 0, { scope: "own", retryAfterMs: 500 });
    expect(() => guard.check({ what: "x" })).toThrow(expect.objectContaining({ status: 429, retryAfterMs: 500 }));
    expect(() => guard.check({ what: "x", hasFiles: true }), "files are counted with the other messages").toThrow();
    guard.check({ what: "y" });
    pass(500);
    guard.check({ what: "x" });
    refuse("x", 429, 0, { scope: "global", retryAfterMs: 800 });
    expect(() => guard.check({ what: "y" })).toThrow(expect.objectContaining({ status: 429, retryAfterMs: 800 }));
    pass(800);
    guard.check({ what: "y" });
  });

  test("the bot answers interactions while its global limit is used up, but not while Discord blocks the address", () => {
    const { guard, refuse, pass } = start();
    refuse("x", 429, 0, { scope: "global", retryAfterMs: 6_000 });
    expect(() => guard.check({ what: "y" })).toThrow(expect.objectContaining({ retryAfterMs: 6_000 }));
    guard.check({ what: "z", isBot: false });
    refuse("x", 429, 0, { isForeign: true, retryAfterMs: 6_000 });
    expect(() => guard.check({ what: "z", isBot: false })).toThrow(/for a while/);
    pass(6_000);
    guard.check({ what: "y" });
    refuse("x", 403, 40333, { retryAfterMs: 5 });
    pass(59_000);
    expect(() => guard.check({ what: "y" })).toThrow(/for a while/);
  });
});

test("the bot makes no more calls than Discord allows in any second", () => {
  let nowMs = 0;
  const limit = createGlobalLimit(() => nowMs);
  const made: number[] = [];
  for (; nowMs < 10_000; nowMs += 7) {
    try {
      limit.take(false);
      made.push(nowMs);
    } catch (error) {
      expect(error).toMatchObject({ status: 429, retryAfterMs: expect.any(Number) });
    }
  }
  for (const from of made) expect(made.filter((at) => at >= from && at < from + 1_000).length).toBeLessThanOrEqual(50);
  expect(made.length).toBeGreaterThan(350);
});

test("the guard tells a call how long the global limit lasts, and does not count the refused call", () => {
  let nowMs = 0;
  const limit = createGlobalLimit(() => nowMs);
  for (let count = 0; count < 45; count++) limit.take(false);
  for (let count = 0; count < 100; count++) {
    expect(() => limit.take(false)).toThrow(expect.objectContaining({ retryAfterMs: 1_100 }));
  }
  nowMs = 1_100;
  for (let count = 0; count < 45; count++) limit.take(false);
});

test("the bot reserves half of its calls for answers while it reads many channels", () => {
  let nowMs = 0;
  const limit = createGlobalLimit(() => nowMs);
  for (let count = 0; count < 22; count++) limit.take(true);
  expect(() => limit.take(true)).toThrow(expect.objectContaining({ status: 429, retryAfterMs: 1_100 }));
  for (let count = 0; count < 23; count++) limit.take(false);
  expect(() => limit.take(false)).toThrow(expect.objectContaining({ status: 429 }));
  nowMs = 1_100;
  limit.take(true);
});

test("several processes share the limits on the bot's calls and refusals", () => {
  let nowMs = 0;
  let processes = 3;
  const limit = createGlobalLimit(
    () => nowMs,
    () => processes,
  );
  for (let count = 0; count < 15; count++) limit.take(false);
  expect(() => limit.take(false)).toThrow(expect.objectContaining({ status: 429, retryAfterMs: 1_100 }));
  nowMs = 500;
  processes = 1;
  for (let count = 0; count < 30; count++) limit.take(false);
  expect(() => limit.take(false)).toThrow(expect.objectContaining({ retryAfterMs: 600 }));

  const guard = createGuard(
    () => nowMs,
    () => 4,
  );
  const refusal = new ApiError("no", { status: 401, code: 0 });
  for (let count = 0; count < 1_249; count++) guard.note({ what: "GET /a" }, refusal);
  guard.check({ what: "GET /a" });
  guard.note({ what: "GET /a" }, refusal);
  expect(() => guard.check({ what: "GET /a" })).toThrow(expect.objectContaining({ status: 429 }));
});
