import { describe, expect, test } from "vitest";
import { createKeyedQueue } from "../../src/concurrency/keyed-queue.ts";

describe("createKeyedQueue", () => {
  test("a keyed queue runs tasks of one key one after another, and of other keys in parallel", async () => {
    const queue = createKeyedQueue();
    const order: string[] = [];
    const first = Promise.withResolvers<void>();
    const one = queue.run("a", async () => {
      order.push("a1 begins");
      await first.promise;
      order.push("a1 ends");
    });
    const two = queue.run("a", async () => void order.push("a2"));
    await queue.run("b", async () => void order.push("b1"));
    expect(order).toEqual(["a1 begins", "b1"]);
    first.resolve();
    await Promise.all([one, two]);
    expect(order).toEqual(["a1 begins", "b1", "a1 ends", "a2"]);
  });

  test("a keyed queue gives each caller its own result, and continues after a failure", async () => {
    const queue = createKeyedQueue();
    const failing = queue.run("a", () => Promise.reject(new Error("no")));
    const next = queue.run("a", () => Promise.resolve(7));
    await expect(failing).rejects.toThrow("no");
    expect(await next).toBe(7);
  });

  test("a keyed queue is idle once all its tasks have ended, even failed ones", async () => {
    const queue = createKeyedQueue();
    await queue.idle();
    const end = Promise.withResolvers<void>();
    const ended: string[] = [];
    const running = queue.run("a", () => end.promise).then(() => ended.push("task"));
    const failing = queue.run("b", () => Promise.reject(new Error("no"))).catch(() => ended.push("failure"));
    const idle = queue.idle().then(() => ended.push("idle"));
    await failing;
    expect(ended).toEqual(["failure"]);
    end.resolve();
    await Promise.all([running, idle]);
    expect(ended).toEqual(["failure", "task", "idle"]);
  });
});
