import { assert, property, string } from "fast-check";
import { describe, expect, test } from "vitest";
import { editDistance } from "../../src/text/edit-distance.ts";

describe("editDistance", () => {
  test.each([
    ["", "", 0],
    ["abc", "abc", 0],
    ["abc", "", 3],
    ["abc", "abd", 1],
    ["abc", "acb", 1],
    ["abcd", "badc", 2],
    ["LOG_LEVEL", "LOG_LVEEL", 1],
    ["kitten", "sitting", 3],
  ])("editDistance from %j to %j is %i", (a, b, distance) => {
    expect(editDistance(a, b)).toBe(distance);
  });

  test("editDistance is symmetric, zero only for equal texts, and at most the longer length", () => {
    const text = string({ maxLength: 12 });
    assert(
      property(text, text, (a, b) => {
        const distance = editDistance(a, b);
        expect(editDistance(b, a)).toBe(distance);
        expect(distance === 0).toBe(a === b);
        expect(distance).toBeLessThanOrEqual(Math.max(a.length, b.length));
      }),
    );
  });
});
