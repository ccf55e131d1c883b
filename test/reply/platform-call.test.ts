import { describe, expect, test } from "vitest";
import { NO_RIGHT } from "../../src/port/right.ts";
import { callPlatform } from "../../src/reply/platform-call.ts";

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
