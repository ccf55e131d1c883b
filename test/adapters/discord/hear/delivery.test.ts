import { describe, expect, test } from "vitest";
import { createDelivery, RETRY_PAUSES_MS } from "../../../../adapters/discord/hear/delivery.ts";
import { message } from "../../../../lab/support/events.ts";
import { recordingLog, silent } from "../../../../lab/support/log.ts";

describe("the delivery of Discord events", () => {
  test("the delivery keeps the order within a channel, and channels do not wait for each other", async () => {
    const accepted: string[] = [];
    const delivery = createDelivery(async (event) => void accepted.push(event.key), silent);
    const gate = Promise.withResolvers<void>();
    const [slow, next, other] = [message("slow"), message("next"), message("other")];
    const first = delivery.enqueue("a", async () => {
      await gate.promise;
      return [slow];
    });
    const second = delivery.enqueue("a", async () => [next]);
    await delivery.enqueue("b", async () => [other]);
    expect(accepted).toEqual([other.key]);
    gate.resolve();
    await Promise.all([first, second]);
    expect(accepted).toEqual([other.key, slow.key, next.key]);
  });

  test("the delivery retries an event that it could not store", async () => {
    let failures = 2;
    const delivery = createDelivery(async () => {
      failures -= 1;
      if (failures >= 0) throw new Error("the disk is full");
    }, silent);
    await delivery.enqueue("a", async () => [message("x")]);
    expect(failures).toBe(-1);
  });

  test("the delivery retries for longer than a store takes to restart, and for less time than a command waits", () => {
    const minutes = RETRY_PAUSES_MS.reduce((sum, ms) => sum + ms, 0) / 60_000;
    expect(minutes).toBeGreaterThanOrEqual(9);
    expect(minutes).toBeLessThan(14);
  });

  test("the delivery gives up when stopped, logs the loss, and retries nothing more", async () => {
    const { log, lines } = recordingLog();
    const offered = Promise.withResolvers<void>();
    const delivery = createDelivery(async () => {
      offered.resolve();
      throw new Error("the disk is full");
    }, log);
    const outcome = delivery.enqueue("a", async () => [message("secret words")]);
    outcome.catch(() => {});
    await offered.promise;
    await delivery.stop();
    await expect(outcome).rejects.toThrow("The adapter is closed and accepts no events.");
    expect(lines.some(({ level }) => level === 50)).toBe(true);
    expect(JSON.stringify(lines)).not.toContain("secret words");
  });
});
