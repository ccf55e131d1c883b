import { expect, test } from "vitest";
import { createTakes } from "../../src/sandbox/takes.ts";

test("Takes of the latest thousand drawings are counted, each by its fingerprint", () => {
  const countTake = createTakes();
  expect(["old", "new", "new"].map(countTake)).toEqual([1, 1, 2]);
  for (let index = 0; index < 999; index += 1) expect(countTake(`other ${index}`)).toBe(1);
  expect(["new", "old"].map(countTake)).toEqual([3, 1]);
});
