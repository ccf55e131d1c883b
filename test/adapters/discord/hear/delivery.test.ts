import { describe, expect, test } from "vitest";
import { createDelivery, RETRY_PAUSES_MS } from "../../../../adapters/discord/listen/delivery.ts";
import { message } from "../../../support/events.ts";
import { recordingLog, silent } from "../../../support/log.ts";

describe("delivery", () => {
  test("keeps the order of a channel, and lets channels not wait for each other", async () => {
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

  test("offers an event again that could not be stored", async () => {
    let failures = 2;
    const delivery = createDelivery(async () => {
      failures -= 1;
      if (failures >= 0) throw new Error("the disk is full");
    }, silent);
    expect(await delivery.enqueue("a", async () => [message("x")])).toBe(true);
  });

  test("offers an event again for longer than a store takes to restart, and for less than a command waits", () => {
    const minutes = RETRY_PAUSES_MS.reduce((sum, ms) => sum + ms, 0) / 60_000;
    expect(minutes).toBeGreaterThanOrEqual(9);
    expect(minutes).toBeLessThan(14);
  });

  test("gives up when it is stopped, logs the loss, and offers nothing more", async () => {
    const { log, lines } = recordingLog();
    const offered = Promise.withResolvers<void>();
    const delivery = createDelivery(async () => {
      offered.resolve();
      throw new Error("the disk is full");
    }, log);
    const outcome = delivery.enqueue("a", async () => [message("secret words")]);
    await offered.promise;
    await delivery.stop();
    expect(await outcome).toBe(false);
    expect(lines.some(({ level }) => level === 50)).toBe(true);
    expect(JSON.stringify(lines)).not.toContain("secret words");
  });
});
