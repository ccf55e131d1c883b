import { describe, expect, test } from "vitest";
import { describeSummary, summarize, toRatios } from "../../../../lab/bench/support/statistics.ts";

describe("summarize", () => {
  test("summarize returns the middle one of an odd number of values, whatever their order", () => {
    expect(summarize([9, 1, 100, 2, 3])).toEqual({ median: 3, min: 1, max: 100 });
  });

  test("summarize returns the mean of the two middle values of an even number", () => {
    expect(summarize([4, 1, 10, 2])).toEqual({ median: 3, min: 1, max: 10 });
  });

  test("summarize sorts numbers by size and does not change the list", () => {
    const values = [10, 9, 100];
    expect(summarize(values).median).toBe(10);
    expect(values).toEqual([10, 9, 100]);
  });

  test("summarize refuses an empty list of values", () => {
    expect(() => summarize([])).toThrow(/there are no values/);
  });
});

describe("toRatios", () => {
  test("toRatios compares within each round, so that a slow round changes nothing", () => {
    expect(toRatios([2, 20, 2], [1, 10, 1])).toEqual([2, 2, 2]);
  });

  test("toRatios refuses different numbers of rounds", () => {
    expect(() => toRatios([1, 2], [1])).toThrow(/2 rounds cannot be compared with 1/);
  });
});

describe("describeSummary", () => {
  test("describeSummary shows the spread after the median", () => {
    expect(describeSummary({ median: 1234.56, min: 1000, max: 2000.04 }, 1)).toBe("1,234.6 (1,000.0–2,000.0)");
  });

  test("describeSummary leaves out a spread that rounding hides", () => {
    expect(describeSummary({ median: 1, min: 0.99, max: 1.01 }, 1)).toBe("1.0");
  });
});
