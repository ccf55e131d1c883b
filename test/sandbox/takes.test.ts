import { expect, test } from "vitest";
import { createTakes } from "../../src/sandbox/takes.ts";

test("Takes of the latest thousand drawings are counted, each by its fingerprint", () => {
  const takes = createTakes();
  expect(["old", "new", "new"].map(takes.next)).toEqual([1, 1, 2]);
  for (let index = 0; index < 999; index += 1) expect(takes.next(`other ${index}`)).toBe(1);
  expect(["new", "old"].map(takes.next)).toEqual([3, 1]);
});
