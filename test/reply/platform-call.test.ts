import { describe, expect, test } from "vitest";
import { SinkError } from "../../src/port/errors.ts";
import { callPlatform, isRefusal } from "../../src/reply/platform-call.ts";

describe("callPlatform", () => {
  test("gives what the call gives", async () => {
    await expect(callPlatform(async () => "id")).resolves.toBe("id");
    await expect(callPlatform(() => Promise.reject(new Error("no")))).rejects.toThrow("no");
  });

  test("rejects in time also where the platform ignores its signal", async () => {
    let signal: AbortSignal | undefined;
    const call = (given: AbortSignal) => {
      signal = given;
      return new Promise<never>(() => {});
    };
    await expect(callPlatform(call, 5)).rejects.toThrow("5 ms");
    expect(signal?.aborted).toBe(true);
  });
});

describe("isRefusal", () => {
  test.each(["gone", "forbidden", "rejected"] as const)("is true of %s", (kind) => {
    expect(isRefusal(new SinkError(kind, "no"))).toBe(true);
  });

  test("is false of what may go well another time", () => {
    expect(isRefusal(new SinkError("rate-limited", "later", { retryAfterMs: 1 }))).toBe(false);
    expect(isRefusal(new SinkError("unavailable", "broken"))).toBe(false);
    expect(isRefusal(new Error("unknown"))).toBe(false);
  });
});
