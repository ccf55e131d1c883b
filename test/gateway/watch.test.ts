import { describe, expect, test } from "vitest";
import { createWatch, describeSeconds } from "../../src/gateway/watch.ts";

const LONG_MS = 60_000;

function aborted(signal: AbortSignal): Promise<unknown> {
  if (signal.aborted) return Promise.resolve(signal.reason);
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(signal.reason), { once: true }));
}

describe("the watch on an answer's timeouts", () => {
  test("a watch aborts with the caller's own reason", async () => {
    const controller = new AbortController();
    const watch = createWatch(controller.signal, LONG_MS);
    const reason = new Error("left");
    controller.abort(reason);
    expect(await aborted(watch.signal)).toBe(reason);
    watch.end();
  });

  test("a watch is aborted from the start if the caller has left", () => {
    const reason = new Error("left");
    const watch = createWatch(AbortSignal.abort(reason), LONG_MS);
    expect(watch.signal.reason).toBe(reason);
    watch.end();
  });

  test("a watch aborts if nothing arrives within the current timeout", async () => {
    const watch = createWatch(new AbortController().signal, LONG_MS);
    watch.expect(20);
    expect(await aborted(watch.signal)).toMatchObject({ kind: "stalled" });
    watch.end();
  });

  test("a watch aborts at the total timeout, whatever came", async () => {
    const watch = createWatch(new AbortController().signal, 20);
    watch.expect(LONG_MS);
    expect(await aborted(watch.signal)).toMatchObject({ kind: "interrupted" });
    watch.end();
  });

  test("a watch restarts its wait each time something comes", async () => {
    const watch = createWatch(new AbortController().signal, LONG_MS);
    let signs = 0;
    const coming = setInterval(() => (signs += 1), 1);
    watch.expect(30, () => signs);
    const meanwhile = createWatch(new AbortController().signal, 120);
    await aborted(meanwhile.signal);
    expect(watch.signal.aborted).toBe(false);
    clearInterval(coming);
    expect(await aborted(watch.signal)).toMatchObject({ kind: "stalled" });
    watch.end();
    meanwhile.end();
  });

  test("the timeout of a watch can be replaced by a shorter one, and then by a longer one", async () => {
    const watch = createWatch(new AbortController().signal, LONG_MS);
    watch.expect(LONG_MS);
    watch.expect(10);
    watch.expect(60);
    const startMs = performance.now();
    expect(await aborted(watch.signal)).toMatchObject({ message: expect.stringContaining("60 ms") });
    expect(performance.now() - startMs).toBeGreaterThanOrEqual(59);
    watch.end();
  });

  test("a watch aborts nothing after it has ended", async () => {
    const controller = new AbortController();
    const watch = createWatch(controller.signal, 10);
    watch.expect(10);
    watch.end();
    controller.abort();
    const other = createWatch(new AbortController().signal, 30);
    await aborted(other.signal);
    expect(watch.signal.aborted).toBe(false);
    other.end();
  });
});

test("the watch reports a wait rounded up", () => {
  expect([0.4, 999, 1_000, 1_001, 90_000].map(describeSeconds)).toEqual(["1 ms", "999 ms", "1 s", "2 s", "90 s"]);
});
