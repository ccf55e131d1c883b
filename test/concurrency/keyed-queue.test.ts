import { describe, expect, test } from "vitest";
import { createKeyedTurns } from "../../src/concurrency/keyed-queue.ts";

describe("createKeyedTurns", () => {
  test("runs tasks of one key one after another, and of another key beside them", async () => {
    const inTurn = createKeyedTurns();
    const order: string[] = [];
    const first = Promise.withResolvers<void>();
    const one = inTurn("a", async () => {
      order.push("a1 begins");
      await first.promise;
      order.push("a1 ends");
    });
    const two = inTurn("a", async () => void order.push("a2"));
    await inTurn("b", async () => void order.push("b1"));
    expect(order).toEqual(["a1 begins", "b1"]);
    first.resolve();
    await Promise.all([one, two]);
    expect(order).toEqual(["a1 begins", "b1", "a1 ends", "a2"]);
  });

  test("gives each caller its own result, and goes on after a failure", async () => {
    const inTurn = createKeyedTurns();
    const failing = inTurn("a", () => Promise.reject(new Error("no")));
    const next = inTurn("a", () => Promise.resolve(7));
    await expect(failing).rejects.toThrow("no");
    expect(await next).toBe(7);
  });
});
