import { describe, expect, test } from "vitest";
import { persist, retry } from "../../src/concurrency/retry.ts";

const never = new AbortController().signal;

/** Fails as often as there are errors, then resolves to the number of the attempt. */
function failing(...errors: Error[]) {
  let attempts = 0;
  return async () => {
    const error = errors[attempts++];
    if (error !== undefined) throw error;
    return attempts;
  };
}

describe("retry", () => {
  test("resolves to the first attempt that succeeds, and tells of those that failed before it", async () => {
    const failures: unknown[] = [];
    const options = { pausesMs: [0, 0, 0], onRetry: (error: unknown) => failures.push(error) };
    await expect(retry(failing(new Error("one"), new Error("two")), options, never)).resolves.toBe(3);
    expect(failures.map(String)).toEqual(["Error: one", "Error: two"]);
  });

  test("rejects with the failure of the attempt behind the last pause", async () => {
    const attempt = failing(new Error("one"), new Error("two"), new Error("three"));
    await expect(retry(attempt, { pausesMs: [0] }, never)).rejects.toThrow("two");
  });

  test("rejects at once with a failure that does not pass", async () => {
    const options = { pausesMs: [60_000], mayPass: () => false };
    await expect(retry(failing(new Error("no")), options, never)).rejects.toThrow("no");
  });

  test("waits as long as a failure asks for, in place of the pause", async () => {
    const options = { pausesMs: [60_000], askedMs: () => 0 };
    await expect(retry(failing(new Error("busy")), options, never)).resolves.toBe(2);
  });

  test("rejects with the reason of a signal that aborts in a pause, and makes no further attempt", async () => {
    const controller = new AbortController();
    const attempt = failing(new Error("one"));
    const options = { pausesMs: [60_000], onRetry: () => queueMicrotask(() => controller.abort("shutdown")) };
    await expect(retry(attempt, options, controller.signal)).rejects.toBe("shutdown");
    await expect(attempt()).resolves.toBe(2);
  });
});

describe("persist", () => {
  test("writes again what failed for a moment, and says whether it was written", async () => {
    const failures: unknown[] = [];
    let attempts = 0;
    const write = async () => {
      attempts += 1;
      if (attempts < 3) throw new Error(`attempt ${attempts}`);
    };
    expect(await persist(write, (error) => failures.push(error))).toBe(true);
    expect(failures.map(String)).toEqual(["Error: attempt 1", "Error: attempt 2"]);
  });

  test("gives up on what fails for good", async () => {
    const failures: unknown[] = [];
    expect(
      await persist(
        () => Promise.reject(new Error("no")),
        (error) => failures.push(error),
      ),
    ).toBe(false);
    expect(failures).toHaveLength(3);
  });

  test("tries once more than it is given pauses", async () => {
    const failures: unknown[] = [];
    const fail = () => Promise.reject(new Error("no"));
    expect(await persist(fail, (error) => failures.push(error), [0, 0, 0, 0])).toBe(false);
    expect(failures).toHaveLength(5);
  });
});
