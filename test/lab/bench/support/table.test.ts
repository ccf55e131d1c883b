import { expect, test } from "vitest";
import { formatTable } from "../../../../lab/bench/support/table.ts";

test("columns are as wide as their widest cell, words to the left and figures to the right", () => {
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
