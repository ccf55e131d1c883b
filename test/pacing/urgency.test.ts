import { describe, expect, test } from "vitest";
import type { Budget } from "../../src/pacing/budget.ts";
import type { CallKind } from "../../src/pacing/call.ts";
import { applyEnd, applySend, applyText, applyWritten, createReplyState } from "../../src/pacing/reply-state.ts";
import { type Moment, toUrgency } from "../../src/pacing/urgency.ts";

interface Plenty {
  credit?: number;
  creditAt?: number;
  isRich?: boolean;
}

function budgetWith({ credit = 100, creditAt = Infinity, isRich = false }: Plenty): Budget {
  return {
    firstGap: 0.33,
    minGap: 0.25,
    keep: 1,
    reserve: () => 0,
    gap: () => 1,
    isRich: () => isRich,
    credit: () => credit,
    creditAt: () => creditAt,
    sent() {},
    done() {},
    keepUntil: () => 0,
  };
}

function momentAt(now: number, more: Partial<Moment> & { plenty?: Plenty } = {}): Moment {
  const { plenty = {}, ...rest } = more;
  return { now, budget: budgetWith(plenty), G: 1, active: 1, z: 0, R: 0, lastCall: -Infinity, ...rest };
}

/** A reply of 240 units per second that was posted at 10 s; its text since then came with the tokens of 60 per second. */
function growing({ edits = 1, until = 10.1 } = {}) {
  const reply = createReplyState("room");
  for (let token = 0; token <= 600; token++) applyText(reply, 4, token / 60);
  const calls: CallKind[] = ["post", ...Array.from({ length: edits }, (): CallKind => "edit")];
  for (const kind of calls) {
    applySend(reply, kind, 10);
    applyWritten(reply, { answer: { ok: true }, behind: false }, 10);
  }
  for (let token = 601; token / 60 <= until; token++) applyText(reply, 4, token / 60);
  return reply;
}

describe("urgency", () => {
  test("holds the first post while more text is likely, a tenth of a second at most", () => {
    const dueOf = (...arrivals: number[]) => {
      const reply = createReplyState("room");
      for (const at of arrivals) applyText(reply, 4, at);
      return toUrgency(reply, momentAt(arrivals.at(-1) ?? 0)).at;
    };
    expect(dueOf(5)).toBeCloseTo(5.025);
    expect(dueOf(5, 5.02)).toBeCloseTo(5.06);
    expect(dueOf(5, 5.02, 5.04, 5.06)).toBeCloseTo(5.1);
    // The next one would come too late.
    expect(dueOf(5, 5.06)).toBeCloseTo(5.06);
    const late = createReplyState("room");
    applyText(late, 4, 5);
    expect(toUrgency(late, momentAt(5.2))).toEqual({ rank: 1, kind: "post", at: 5.2 });
  });

  test("makes a final due at once, as a post where nothing was posted", () => {
    const reply = createReplyState("room");
    applyText(reply, 4, 5);
    applyEnd(reply);
    expect(toUrgency(reply, momentAt(5))).toEqual({ rank: 0, kind: "post", at: 5 });
    const posted = growing();
    applyEnd(posted);
    expect(toUrgency(posted, momentAt(10.1))).toEqual({ rank: 0, kind: "final", at: 10.1 });
  });

  test("makes the next message due at once when the text overflows", () => {
    const reply = growing();
    applySend(reply, "edit", 10.2);
    applyWritten(reply, { answer: { ok: true }, behind: true, next: "post" }, 10.4);
    expect(toUrgency(reply, momentAt(10.4))).toEqual({ rank: 1, kind: "post", at: 10.4 });
  });

  test("gives steady text exactly the planned gap, once it has come in", () => {
    const reply = growing({ until: 10.98 });
    const { at } = toUrgency(reply, momentAt(10.98));
    expect(at).toBeGreaterThan(10.98);
    expect(at).toBeLessThan(11.03);
  });

  test("makes the first edit early while there is plenty", () => {
    const eager = growing({ edits: 0, until: 10.3 });
    expect(toUrgency(eager, momentAt(10.3, { plenty: { isRich: true, credit: 1 } })).at).toBeCloseTo(10.33, 1);
    expect(toUrgency(eager, momentAt(10.3, { plenty: { credit: 1 } })).at).toBeGreaterThan(10.5);
  });

  test("never lets text wait longer than one and a half gaps of its turn", () => {
    const reply = growing({ until: 10.02 });
    expect(toUrgency(reply, momentAt(10.02, { G: 2, plenty: { credit: 1 } })).at).toBeCloseTo(10 + 1 / 60 + 3, 1);
  });

  test("goes before its price is reached when a shared budget was not used for a gap", () => {
    const reply = growing({ until: 10.9 });
    const dueAfter = (lastCall: number) =>
      toUrgency(reply, momentAt(10.9, { z: 22, active: 2, lastCall, plenty: { credit: 1 } })).at;
    expect(dueAfter(9)).toBeLessThan(11.85);
    expect(dueAfter(10.9)).toBeCloseTo(11.9);
    expect(dueAfter(11.5)).toBeCloseTo(12.5);
  });

  test("uses a lull if enough is unseen and there are calls to spare", () => {
    const reply = growing({ until: 10.5 });
    expect(toUrgency(reply, momentAt(10.55)).at).toBeCloseTo(10.5 + 4 / 60, 2);
    expect(toUrgency(reply, momentAt(10.55, { plenty: { credit: 1 } })).at).toBeGreaterThan(10.7);
    const little = growing({ until: 10.1 });
    expect(toUrgency(little, momentAt(10.17)).at).toBeGreaterThan(10.3);
  });

  test("shows the leftovers before a long pause if there is plenty", () => {
    const little = growing({ until: 10.1 });
    expect(toUrgency(little, momentAt(10.2, { plenty: { isRich: true } })).at).toBeCloseTo(10.6, 1);
  });

  test("keeps two calls of one reply apart", () => {
    const reply = growing({ until: 10.1 });
    expect(toUrgency(reply, momentAt(10.1, { G: 0.01 })).at).toBe(10.25);
  });

  test("leaves calls for finals, unless one more returns soon", () => {
    const reply = growing({ until: 12 });
    expect(toUrgency(reply, momentAt(12, { R: 3, plenty: { credit: 3, creditAt: 20 } })).at).toBe(20);
    expect(toUrgency(reply, momentAt(12, { R: 3, plenty: { credit: 3, creditAt: 15 } })).at).toBe(12);
    expect(toUrgency(reply, momentAt(12, { R: 3, plenty: { credit: 4, creditAt: 20 } })).at).toBe(12);
    applyEnd(reply);
    expect(toUrgency(reply, momentAt(12, { R: 3, plenty: { credit: 1 } })).at).toBe(12);
  });

  test("asks again no sooner than in two milliseconds, and not before a back-off is over", () => {
    const reply = growing({ until: 12 });
    expect(toUrgency(reply, momentAt(12, { plenty: { credit: 0, creditAt: 12 } })).at).toBeCloseTo(12.002);
    reply.notBefore = 14;
    expect(toUrgency(reply, momentAt(12)).at).toBe(14);
  });
});
