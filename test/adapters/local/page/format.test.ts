import { expect, test } from "vitest";
import { toBoundary } from "../../../../adapters/local/page/format.ts";

test("a cursor position inside an emoji moves after the emoji", () => {
  const text = "a😀b";
  expect([0, 1, 2, 3, 4, 9].map((at) => toBoundary(text, at))).toEqual([0, 1, 3, 3, 4, 4]);
  for (let at = 0; at <= text.length; at++) {
    expect(text.slice(0, toBoundary(text, at)).isWellFormed()).toBe(true);
    expect(text.slice(toBoundary(text, at)).isWellFormed()).toBe(true);
  }
});
