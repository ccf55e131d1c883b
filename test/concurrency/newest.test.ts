import { describe, expect, test } from "vitest";
import { createNewest } from "../../src/concurrency/newest.ts";

function start() {
  const calls: string[] = [];
  let gate = Promise.withResolvers<void>();
  const newest = createNewest<string>(async (value) => {
    calls.push(value);
    await gate.promise;
  }, "");
  /** Ends the call under way. */
  const next = (error?: Error) => {
    const { resolve, reject } = gate;
    gate = Promise.withResolvers();
    if (error === undefined) resolve();
    else reject(error);
  };
  return { newest, calls, next };
}

describe("the newest value", () => {
  test("is shown after the call under way, and those before it are skipped", async () => {
    const { newest, calls, next } = start();
    for (const value of ["a", "b", "c"]) newest.show(value);
    expect(calls).toEqual(["a"]);
    next();
    await expect.poll(() => calls).toEqual(["a", "c"]);
    next();
    await newest.settled();
    expect(calls).toEqual(["a", "c"]);
  });

  test("that is there already is not shown again, and the next one still is", async () => {
    const { newest, calls, next } = start();
    newest.show("");
    expect(calls).toEqual([]);
    newest.show("a");
    next();
    await newest.settled();
    expect(calls).toEqual(["a"]);
  });

  test("is shown also when the one before it could not be", async () => {
    const { newest, calls, next } = start();
    newest.show("a");
    newest.show("b");
    next(new Error("no"));
    await expect.poll(() => calls).toEqual(["a", "b"]);
    next();
    await newest.settled();
  });
});
