import { expect, test } from "vitest";
import { createUnderWay } from "../../src/concurrency/under-way.ts";

test("tracked work settles when all of it has ended, successfully or not", async () => {
  const underWay = createUnderWay();
  const [one, other] = [Promise.withResolvers<string>(), Promise.withResolvers<string>()];
  const held = underWay.hold(one.promise);
  const failing = underWay.hold(other.promise);
  let isSettled = false;
  const settled = underWay.settled().then(() => void (isSettled = true));
  one.resolve("passed on");
  expect(await held).toBe("passed on");
  expect(isSettled).toBe(false);
  other.reject(new Error("passed on too"));
  await expect(failing).rejects.toThrow("passed on too");
  await settled;
  await underWay.settled();
});
