import { describe, expect, test } from "vitest";
import { persist, retry } from "../../src/concurrency/retry.ts";

const never = new AbortController().signal;

/** Fails once for each of the errors, then resolves to the number of the attempt. */
function failing(...errors: Error[]) {
  let attempts = 0;
  return async () => {
    const error = errors[attempts++];
    if (error !== undefined) throw error;
    return attempts;
  };
}

describe("retry", () => {
  test("retry resolves to the first success, and reports the failures before it", async () => {
    const failures: unknown[] = [];
    const options = { pausesMs: [0, 0, 0], onRetry: (error: unknown) => failures.push(error) };
    await expect(retry(failing(new Error("one"), new Error("two")), options, never)).resolves.toBe(3);
    expect(failures.map(String)).toEqual(["Error: one", "Error: two"]);
  });

  test("retry rejects with the failure after the last pause", async () => {
    const attempt = failing(new Error("one"), new Error("two"), new Error("three"));
    await expect(retry(attempt, { pausesMs: [0] }, never)).rejects.toThrow("two");
  });

  test("retry rejects at once with a permanent failure", async () => {
    const options = { pausesMs: [60_000], mayPass: () => false };
    await expect(retry(failing(new Error("no")), options, never)).rejects.toThrow("no");
  });

  test("retry waits as long as a failure asks for instead of the pause", async () => {
    const options = { pausesMs: [60_000], askedMs: () => 0 };
    await expect(retry(failing(new Error("busy")), options, never)).resolves.toBe(2);
  });

  test("retry rejects with the reason of a signal that aborts in a pause, and makes no further attempt", async () => {
    const controller = new AbortController();
    const attempt = failing(new Error("one"));
    const options = { pausesMs: [60_000], onRetry: () => queueMicrotask(() => controller.abort("shutdown")) };
    await expect(retry(attempt, options, controller.signal)).rejects.toBe("shutdown");
    await expect(attempt()).resolves.toBe(2);
  });
});

describe("persist", () => {
  test("persist repeats a write that failed briefly, and says whether it succeeded", async () => {
    const failures: unknown[] = [];
    let attempts = 0;
    const write = async () => {
      attempts += 1;
      if (attempts < 3) throw new Error(`attempt ${attempts}`);
    };
    expect(await persist(write, (error) => failures.push(error))).toBe(true);
    expect(failures.map(String)).toEqual(["Error: attempt 1", "Error: attempt 2"]);
  });

  test("persist gives up on a permanent failure", async () => {
    const failures: unknown[] = [];
    expect(
      await persist(
        () => Promise.reject(new Error("no")),
        (error) => failures.push(error),
      ),
    ).toBe(false);
    expect(failures).toHaveLength(3);
  });

  test("persist makes one more attempt than there are pauses", async () => {
    const failures: unknown[] = [];
    const fail = () => Promise.reject(new Error("no"));
    expect(await persist(fail, (error) => failures.push(error), [0, 0, 0, 0])).toBe(false);
    expect(failures).toHaveLength(5);
  });
});
