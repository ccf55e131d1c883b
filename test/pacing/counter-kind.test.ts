import { describe, expect, test } from "vitest";
import type { Seen } from "../../src/pacing/counter.ts";
import { toKind, toReference } from "../../src/pacing/counter-kind.ts";

function seen(s: number, reset: number, remaining: number, over = 0): Seen {
  const a = s + 0.2;
  return { kind: "edit", s, a, reset, remaining, lo: s + reset, hi: a + reset, over };
}

describe("counter kind", () => {
  const first = toReference(seen(0, 1, 4), 5);

  test("is a fixed window when the reset stands still", () => {
    expect(toKind(seen(0.4, 0.6, 3), first, 1)).toBe("fixed");
  });

  test("is leaky when the reset moves on by a call", () => {
    expect(toKind(seen(0.4, 1.6, 3), first, 1)).toBe("leaky");
    expect(toKind(seen(0.6, 2.4, 2), first, 2)).toBe("leaky");
  });

  test("stays open when both or neither fit", () => {
    expect(toKind(seen(0.4, 1.1, 3), first, 1)).toBeUndefined();
    const narrow = toReference({ ...seen(0, 0.1, 4) }, 5);
    expect(toKind(seen(0.05, 0.1, 3), narrow, 1)).toBeUndefined();
  });

  test("is not judged from answers that cannot be compared", () => {
    expect(toKind(seen(0.4, 0.6, 3, 1), first, 1)).toBeUndefined();
    expect(toKind(seen(1, 1, 3), first, 1)).toBeUndefined();
    expect(toKind(seen(0.4, 0.6, 5), first, 1)).toBeUndefined();
  });
});
