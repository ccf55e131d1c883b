import { expect, test } from "vitest";
import { FencedError } from "../../../src/concurrency/fence.ts";
import { SURE_MS } from "../../../src/queue/redis/lanes.ts";
import { createLeases } from "../../../src/queue/redis/leases.ts";
import { StoreError } from "../../../src/store/outage.ts";
import { eventually } from "../../support/eventually.ts";
import { silent } from "../../support/log.ts";

test("a lane that another process has taken over is lost once, however long its work takes to end", async () => {
  let looks = 0;
  let losses = 0;
  const lanes = { prolong: async () => [`lane-${(looks += 1) > 0}`] };
  const leases = createLeases(lanes, silent, () => (losses += 1));
  const lease = leases.hold("lane-true", "token", performance.now());
  await eventually(() => looks).toBeGreaterThanOrEqual(3);
  expect([losses, lease.signal.reason]).toEqual([1, "lost"]);
  leases.close();
});

test("a lane whose lease ended while the process stood still waits for Redis, one that it still had does not", async () => {
  let isAway = true;
  const prolong = async () => {
    if (isAway) throw new StoreError("away");
    return ["ended"];
  };
  const leases = createLeases({ prolong }, silent);
  const ended = leases.hold("ended", "token", performance.now());
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, SURE_MS);
  let mayGoOn = false;
  const checked = ended.check().then(() => (mayGoOn = true));
  const awokeAtMs = performance.now();
  const had = leases.hold("had", "token", awokeAtMs);
  await eventually(() => performance.now() - awokeAtMs).toBeGreaterThan(SURE_MS);
  // Until Redis counts as out of reach.
  await had.check();
  expect(mayGoOn).toBe(false);
  isAway = false;
  await expect(checked).rejects.toThrow(FencedError);
  leases.close();
});
