import { expect, test } from "vitest";
import { createLeases } from "../../../src/queue/redis/leases.ts";
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
