import { describe, expect, test } from "vitest";
import { createDelivery } from "../../../../adapters/slack/hear/delivery.ts";
import type { InboundEvent } from "../../../../src/port/events.ts";

const event = (key: string) => ({ key }) as InboundEvent;

describe("the delivery of Slack events", () => {
  test("the delivery keeps the order in a channel while one event takes long to read, and delays no other channel", async () => {
    const taken: string[] = [];
    const delivery = createDelivery(async ({ key }) => void taken.push(key));
    const slow = Promise.withResolvers<InboundEvent[]>();
    const first = delivery.enqueue("a", () => slow.promise);
    const second = delivery.enqueue("a", async () => [event("second")]);
    await delivery.enqueue("b", async () => [event("elsewhere")]);
    expect(taken).toEqual(["elsewhere"]);
    slow.resolve([event("first"), event("also first")]);
    await Promise.all([first, second]);
    expect(taken).toEqual(["elsewhere", "first", "also first", "second"]);
  });

  test("the delivery reads waiting events in parallel", async () => {
    const delivery = createDelivery(async () => {});
    const begun: number[] = [];
    const end = Promise.withResolvers<InboundEvent[]>();
    const reading = [1, 2, 3].map((index) =>
      delivery.enqueue("a", () => {
        begun.push(index);
        return end.promise;
      }),
    );
    expect(begun).toEqual([1, 2, 3]);
    end.resolve([]);
    await Promise.all(reading);
  });

  test("the delivery rejects an event that the core refused, and continues with the next", async () => {
    const delivery = createDelivery(async ({ key }) => {
      if (key === "bad") throw new Error("the disk is full");
    });
    await expect(delivery.enqueue("a", async () => [event("bad")])).rejects.toThrow("the disk is full");
    await delivery.enqueue("a", async () => [event("good")]);
    await expect(delivery.enqueue("a", () => Promise.reject(new Error("unreadable")))).rejects.toThrow("unreadable");
    await delivery.enqueue("a", async () => [event("good")]);
  });

  test("no later event overtakes an event that the delivery could not read", async () => {
    const taken: string[] = [];
    const delivery = createDelivery(async ({ key }) => void taken.push(key));
    const slow = Promise.withResolvers<InboundEvent[]>();
    const first = delivery.enqueue("a", () => slow.promise);
    const unreadable = delivery.enqueue("a", () => Promise.reject(new Error("unreadable"))).catch(() => {});
    await delivery.enqueue("b", async () => [event("elsewhere")]);
    const last = delivery.enqueue("a", async () => [event("last")]);
    await delivery.enqueue("b", async () => [event("elsewhere")]);
    slow.resolve([event("first")]);
    await Promise.all([first, unreadable, last]);
    expect(taken).toEqual(["elsewhere", "elsewhere", "first", "last"]);
  });

  test("a stopped delivery accepts nothing more, and stopping waits for events in flight", async () => {
    const stored = Promise.withResolvers<void>();
    const delivery = createDelivery(() => stored.promise);
    const delivering = delivery.enqueue("a", async () => [event("last")]);
    let isStopped = false;
    const stopping = delivery.stop().then(() => (isStopped = true));
    await expect(delivery.enqueue("b", async () => [])).rejects.toThrow("no longer accepts events");
    expect(isStopped).toBe(false);
    stored.resolve();
    await Promise.all([delivering, stopping]);
  });
});
