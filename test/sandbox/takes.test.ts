import { expect, test } from "vitest";
import { createTakes } from "../../src/sandbox/takes.ts";

test("Takes are counted for each fingerprint, and forgotten oldest first", () => {
  const takes = createTakes(2);
  expect(["a", "a", "b", "a", "c", "b", "c"].map((fingerprint) => takes.next(fingerprint))).toEqual([
    1, 2, 1, 3, 1, 1, 2,
  ]);
});
