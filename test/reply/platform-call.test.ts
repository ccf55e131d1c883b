import { describe, expect, test } from "vitest";
import { SinkError } from "../../src/port/errors.ts";
import { NO_RIGHT } from "../../src/port/right.ts";
import { callPlatform, isRefusal } from "../../src/reply/platform-call.ts";

describe("callPlatform", () => {
  test("callPlatform returns the call's result", async () => {
    await expect(callPlatform(NO_RIGHT, async () => "id")).resolves.toBe("id");
    await expect(callPlatform(NO_RIGHT, () => Promise.reject(new Error("no")))).rejects.toThrow("no");
  });

  test("callPlatform rejects in time even if the platform ignores its signal", async () => {
    let signal: AbortSignal | undefined;
    const call = (given: AbortSignal) => {
      signal = given;
      return new Promise<never>(() => {});
    };
    await expect(callPlatform(NO_RIGHT, call, 5)).rejects.toThrow("5 ms");
    expect(signal?.aborted).toBe(true);
  });
});

describe("isRefusal", () => {
  test.each(["gone", "forbidden", "rejected"] as const)("isRefusal is true for %s", (kind) => {
    expect(isRefusal(new SinkError(kind, "no"))).toBe(true);
  });

  test("isRefusal is false if a retry can succeed", () => {
    expect(isRefusal(new SinkError("rate-limited", "later", { retryAfterMs: 1 }))).toBe(false);
    expect(isRefusal(new SinkError("unavailable", "broken"))).toBe(false);
    expect(isRefusal(new Error("unknown"))).toBe(false);
  });
});
