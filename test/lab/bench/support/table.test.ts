import { expect, test } from "vitest";
import { formatTable } from "../../../../lab/bench/support/table.ts";

test("the columns of a table are as wide as their widest cell, with words to the left and numbers to the right", () => {
  const rows = [
    ["a", "1,000"],
    ["longer", "5"],
  ];
  expect(formatTable(["name", "ms"], rows).split("\n")).toEqual([
    "name       ms",
    "------  -----",
    "a       1,000",
    "longer      5",
  ]);
});
