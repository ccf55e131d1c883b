import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { percentile, type Sketch, toStep } from "../../src/insight/sketch.ts";

function toSketch(durations: readonly number[]): Sketch {
  const sketch: Sketch = new Map();
  for (const ms of durations) sketch.set(toStep(ms), (sketch.get(toStep(ms)) ?? 0) + 1);
  return sketch;
}

describe("a sketch of durations", () => {
  test("a percentile is off by at most 4.5 % for any measurements", () => {
    const durations = fc.array(fc.integer({ min: 1, max: 3_600_000 }), { minLength: 1, maxLength: 200 });
    fc.assert(
      fc.property(durations, fc.constantFrom(0.5, 0.95, 0.99), (measured, share) => {
        const sorted = measured.toSorted((one, other) => one - other);
        const exact = sorted[Math.ceil(sorted.length * share) - 1] ?? 0;
        const found = percentile(toSketch(measured), share) ?? 0;
        expect(Math.abs(found - exact) / exact).toBeLessThan(0.045);
      }),
    );
  });

  test("times of zero and of more than an hour count at the ends of the scale", () => {
    expect(percentile(toSketch([0]), 0.5)).toBe(1);
    expect(percentile(toSketch([86_400_000]), 0.5)).toBeCloseTo(3_600_000, -6);
    expect(percentile(new Map(), 0.5)).toBeUndefined();
  });
});
