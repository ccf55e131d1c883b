import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createByteBudget } from "../../src/concurrency/byte-budget.ts";

describe("createByteBudget", () => {
  test("a byte budget lets one body hold at most as many bytes as remain free for others", () => {
    const budget = createByteBudget(100);
    const [first, second] = [budget.open(), budget.open()];
    expect([first.hold(50), first.hold(51)]).toEqual([true, false]);
    expect([second.hold(25), second.hold(26)]).toEqual([true, false]);
    first.release();
    expect(second.hold(50)).toBe(true);
  });

  test("a byte budget reserves a small share for others, even if many bodies hold all they can", () => {
    const budget = createByteBudget(128 * 1024 * 1024);
    for (let count = 0; count < 60; count++) {
      const share = budget.open();
      for (let sizeBytes = 64 * 1024; share.hold(sizeBytes); sizeBytes += 64 * 1024);
    }
    expect(budget.open().hold(20_000)).toBe(true);
  });

  test("a byte budget rejects NaN sizes, and continues with others", () => {
    const budget = createByteBudget(100);
    expect(budget.open().hold(Number.NaN)).toBe(false);
    expect(budget.open().hold(50)).toBe(true);
    expect(budget.open().hold(50)).toBe(false);
  });

  test("a byte budget never exceeds its limit, and is fully available again after all releases, even repeated ones", () => {
    const step = fc.record({ body: fc.nat(4), sizeBytes: fc.nat(120), isOver: fc.boolean() });
    fc.assert(
      fc.property(fc.array(step), (steps) => {
        const budget = createByteBudget(100);
        const shares = Array.from({ length: 5 }, () => ({ share: budget.open(), heldBytes: 0 }));
        for (const { body, sizeBytes, isOver } of steps) {
          const entry = shares[body];
          if (entry === undefined) continue;
          if (isOver) {
            entry.share.release();
            Object.assign(entry, { share: budget.open(), heldBytes: 0 });
          } else if (entry.share.hold(sizeBytes)) entry.heldBytes = sizeBytes;
          expect(shares.reduce((sum, { heldBytes }) => sum + heldBytes, 0)).toBeLessThanOrEqual(100);
        }
        for (const { share } of [...shares, ...shares]) share.release();
        expect(budget.open().hold(50)).toBe(true);
      }),
    );
  });
});
