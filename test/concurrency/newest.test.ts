import { describe, expect, test } from "vitest";
import { createNewest } from "../../src/concurrency/newest.ts";

function start() {
  const calls: string[] = [];
  let gate = Promise.withResolvers<void>();
  const newest = createNewest<string>(async (value) => {
    calls.push(value);
    await gate.promise;
  }, "");
  const next = (failure?: Error) => {
    const { resolve, reject } = gate;
    gate = Promise.withResolvers();
    if (failure === undefined) resolve();
    else reject(failure);
  };
  return { newest, calls, next };
}

describe("the display of only the newest value", () => {
  test("the newest value is shown after the current call ends, and values between are skipped", async () => {
    const { newest, calls, next } = start();
    for (const value of ["a", "b", "c"]) newest.show(value);
    expect(calls).toEqual(["a"]);
    next();
    await expect.poll(() => calls).toEqual(["a", "c"]);
    next();
    await newest.settled();
    expect(calls).toEqual(["a", "c"]);
  });

  test("an unchanged value is not shown again, and the next one is", async () => {
    const { newest, calls, next } = start();
    newest.show("");
    expect(calls).toEqual([]);
    newest.show("a");
    next();
    await newest.settled();
    expect(calls).toEqual(["a"]);
  });

  test("the newest value is shown even if the previous one failed", async () => {
    const { newest, calls, next } = start();
    newest.show("a");
    newest.show("b");
    next(new Error("no"));
    await expect.poll(() => calls).toEqual(["a", "b"]);
    next();
    await newest.settled();
  });
});
