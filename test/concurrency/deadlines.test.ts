import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import { mapBounded, runWithin, untilAborted } from "../../src/concurrency/deadlines.ts";

const LONG_MS = 60_000;
const never = new AbortController().signal;

describe("runWithin", () => {
  test("runWithin resolves to the task's result", async () => {
    await expect(runWithin(LONG_MS, async () => "done", never)).resolves.toBe("done");
  });

  test("runWithin abandons a task that ignores its signal after the timeout", async () => {
    const late = runWithin(5, () => new Promise(() => {}), never);
    await expect(late).rejects.toMatchObject({ name: "TimeoutError", message: "Not finished within 5 ms." });
  });

  test("runWithin aborts the task's own signal after the timeout", async () => {
    const ended = Promise.withResolvers<unknown>();
    const task = async (signal: AbortSignal) => {
      signal.addEventListener("abort", () => ended.resolve(signal.reason));
      await new Promise(() => {});
    };
    await runWithin(5, task, never).catch(() => {});
    await expect(ended.promise).resolves.toMatchObject({ name: "TimeoutError" });
  });

  test("runWithin rejects with the caller's reason when the caller aborts", async () => {
    const controller = new AbortController();
    const running = runWithin(LONG_MS, () => new Promise(() => {}), controller.signal);
    controller.abort("stopped");
    await expect(running).rejects.toBe("stopped");
  });

  test("runWithin starts nothing if the signal has already aborted", async () => {
    let begun = false;
    const running = runWithin(LONG_MS, async () => void (begun = true), AbortSignal.abort("stopped"));
    await expect(running).rejects.toBe("stopped");
    expect(begun).toBe(false);
  });

  test("runWithin ignores how an abandoned task ends", async () => {
    const task = Promise.withResolvers<string>();
    await runWithin(5, () => task.promise, never).catch(() => {});
    // An unhandled rejection would fail this file.
    task.reject(new Error("late"));
    await new Promise(setImmediate);
  });

  test("runWithin leaves no listener on a signal that outlives the task", async () => {
    const { signal } = new AbortController();
    await runWithin(LONG_MS, async () => {}, signal);
    await untilAborted(Promise.resolve(), signal);
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });
});

describe("mapBounded", () => {
  test("mapBounded keeps the order of the items whatever finishes first", async () => {
    const gates = [0, 1, 2].map(() => Promise.withResolvers<void>());
    const mapped = mapBounded([0, 1, 2], 3, async (item) => {
      await gates[item]?.promise;
      return item * 10;
    });
    for (const gate of gates.toReversed()) gate.resolve();
    await expect(mapped).resolves.toEqual([0, 10, 20]);
  });

  test("mapBounded runs as many at a time as allowed and no more", async () => {
    let running = 0;
    let most = 0;
    await mapBounded(Array.from({ length: 20 }), 3, async () => {
      most = Math.max(most, ++running);
      await new Promise(setImmediate);
      running--;
    });
    expect(most).toBe(3);
  });

  test("mapBounded starts nothing after a rejection", async () => {
    const begun: number[] = [];
    const mapped = mapBounded([0, 1, 2, 3], 2, async (item) => {
      begun.push(item);
      if (item === 0) throw new Error("first");
      await new Promise(setImmediate);
    });
    await expect(mapped).rejects.toThrow("first");
    await new Promise(setImmediate);
    expect(begun).toEqual([0, 1]);
  });
});
