import { expect, test } from "vitest";
import { createPatience } from "../../lab/support/patience.ts";
import { eventually } from "./eventually.ts";

test("the wait resolves when a value becomes the expected one", async () => {
  let count = 0;
  await eventually(() => (count += 1)).toBeGreaterThan(2);
  await eventually(async () => (count += 1)).not.toBeLessThan(5);
  await expect(eventually(() => 1, 50)["toHaveBeen" as "toBe"](1)).rejects.toThrow();
});

test("the wait fails once nothing changes, however often something changed before", async () => {
  const silence = Promise.withResolvers<void>();
  let moves = 0;
  let movesAtEnd = 0;
  const patience = createPatience(() => {
    movesAtEnd = moves;
    silence.resolve();
  }, 50);
  const moving = setInterval(() => {
    moves += 1;
    patience.moved();
    if (moves === 10) clearInterval(moving);
  }, 1);
  await silence.promise;
  expect(movesAtEnd).toBe(10);
});
