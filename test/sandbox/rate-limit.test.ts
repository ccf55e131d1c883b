import { describe, expect, test } from "vitest";
import { createRateLimit } from "../../src/sandbox/access.ts";
import { ApiError } from "../../src/sandbox/errors.ts";
import { ask, contentOf, start } from "./sandbox.ts";

describe("the rate limit of the sandbox", () => {
  test("a rate limit has status 429, rate_limit_error, rate_limit_exceeded, a message that names the model, param null, Retry-After", async () => {
    const sandbox = await start({ requestsPerMinute: 1 });
    await contentOf(ask(sandbox, "hi"));
    const response = await ask(sandbox, "hi");
    expect(response.status).toBe(429);
    expect(await response.json()).toEqual({
      error: {
        type: "rate_limit_error",
        code: "rate_limit_exceeded",
        message: "rate limit exceeded for model sandbox-chat",
        param: null,
      },
    });
    expect(Number(response.headers.get("retry-after"))).toSatisfy((seconds: number) => seconds >= 1 && seconds <= 60);
  });

  test("the sandbox counts each key and each model separately", async () => {
    const sandbox = await start({ requestsPerMinute: 1 });
    expect((await ask(sandbox, "hi")).status).toBe(200);
    expect((await ask(sandbox, "hi", { model: "sandbox-text" })).status).toBe(200);
    expect((await ask(sandbox, "hi", {}, { authorization: "Bearer sk-sandbox-chat" })).status).toBe(200);
    expect((await ask(sandbox, "hi")).status).toBe(429);
  });

  test("the sandbox does not count a refused request, and accepts one after the announced wait", () => {
    let nowMs = 0;
    const countRequest = createRateLimit(2, () => nowMs);
    countRequest("k", "m");
    nowMs = 1500;
    countRequest("k", "m");
    nowMs = 2100;
    const waits = [1, 2, 3].map(() => {
      try {
        countRequest("k", "m");
        return undefined;
      } catch (error) {
        return error instanceof ApiError ? error.headers["retry-after"] : error;
      }
    });
    expect(waits).toEqual(["58", "58", "58"]);
    nowMs += 58_000;
    countRequest("k", "m");
  });

  test("the sandbox does not count an invalid request", async () => {
    const sandbox = await start({ requestsPerMinute: 1 });
    expect((await ask(sandbox, "hi", { temperature: 9 })).status).toBe(400);
    expect((await ask(sandbox, "hi")).status).toBe(200);
  });
});
