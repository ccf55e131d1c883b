import { describe, expect, test } from "vitest";
import { describeSummary, summarize, toRatios } from "../../../bench/support/statistics.ts";

describe("summarize", () => {
  test("takes the middle one of an odd number of values, whatever their order", () => {
    expect(summarize([9, 1, 100, 2, 3])).toEqual({ median: 3, min: 1, max: 100 });
  });

  test("takes the mean of the two middle ones of an even number", () => {
    expect(summarize([4, 1, 10, 2])).toEqual({ median: 3, min: 1, max: 10 });
  });

  test("compares numbers as numbers and leaves the list as it was", () => {
    const values = [10, 9, 100];
    expect(summarize(values).median).toBe(10);
    expect(values).toEqual([10, 9, 100]);
  });

  test("refuses to summarize nothing", () => {
    expect(() => summarize([])).toThrow(/no value was measured/);
  });
});

describe("toRatios", () => {
  test("compares within each round, so that a slow round changes nothing", () => {
    expect(toRatios([2, 20, 2], [1, 10, 1])).toEqual([2, 2, 2]);
  });

  test("refuses rounds that are not the same ones", () => {
    expect(() => toRatios([1, 2], [1])).toThrow(/2 rounds cannot be compared with 1/);
  });
});

describe("describeSummary", () => {
  test("puts the spread behind the median", () => {
    expect(describeSummary({ median: 1234.56, min: 1000, max: 2000.04 }, 1)).toBe("1,234.6 (1,000.0–2,000.0)");
  });

  test("leaves out a spread that does not show", () => {
    expect(describeSummary({ median: 1, min: 0.99, max: 1.01 }, 1)).toBe("1.0");
  });
});
