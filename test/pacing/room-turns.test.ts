import { describe, expect, test } from "vitest";
import { createRoomTurns } from "../../src/pacing/room-turns.ts";

describe("room turns", () => {
  test("allow one post at a time and the next a pause after the call arrived, at the latest", () => {
    const turns = createRoomTurns(1);
    expect(turns.credit(0)).toBe(1);
    turns.sent(3.5);
    expect(turns.credit(5)).toBe(0);
    expect(turns.creditAt(1, 5)).toBe(Infinity);
    expect(turns.keepUntil()).toBe(Infinity);
    turns.done({ ok: true }, 5);
    expect([5, 5.2, 5.3].map(turns.credit)).toEqual([0, 0, 1]);
    expect(turns.creditAt(1, 5)).toBe(5.25);
    expect(turns.creditAt(2, 5)).toBe(Infinity);
    // A slow call may have been slow on its way: half the quickest round trip is all that is sure.
    turns.sent(10);
    turns.done({ ok: true }, 13);
    expect(turns.creditAt(1, 13)).toBe(13.25);
  });

  test("pause also after a failure, and as long as a refusal asks", () => {
    const turns = createRoomTurns(1);
    turns.sent(0);
    turns.done({ ok: false }, 1);
    expect(turns.creditAt(1, 1)).toBe(2);
    turns.sent(2);
    turns.done({ ok: false, retryAfter: 10 }, 3);
    expect(turns.creditAt(1, 3)).toBe(13);
    expect(turns.keepUntil()).toBe(13);
  });
});
