import { describe, expect, test } from "vitest";
import { createReplays, findHeaderProblem } from "../../../../adapters/slack/listen/signature.ts";

const SIGNATURE = `v0=${"a".repeat(64)}`;
const NOW_S = 1_700_000_000;

function problem(timestamp: string | undefined, signature: readonly string[] = [SIGNATURE]) {
  const headers = {
    "x-slack-signature": signature,
    ...(timestamp !== undefined && { "x-slack-request-timestamp": [timestamp] }),
  };
  return findHeaderProblem(headers, NOW_S * 1_000);
}

describe("the headers of a request", () => {
  test("may be as old as five minutes, and as far ahead", () => {
    for (const skewS of [0, -299, 299]) expect(problem(String(NOW_S + skewS))).toBeUndefined();
    expect(problem(String(NOW_S - 301))).toMatch(/old/);
    expect(problem(String(NOW_S + 301))).toMatch(/future/);
  });

  test("have the shape of a signature, whatever it is of", () => {
    for (const odd of ["", "v0=", "v0=abc", `v1=${"a".repeat(64)}`, `${SIGNATURE}a`, SIGNATURE.toUpperCase()]) {
      expect(problem(String(NOW_S), [odd])).toMatch(/no signature/);
    }
  });

  test("stand there once, with a time that is one", () => {
    expect(problem(String(NOW_S), [SIGNATURE, SIGNATURE])).toMatch(/more than once/);
    for (const odd of ["", "soon", "1e9", "-5", "0x10", "1700000000.5", "9".repeat(20)]) {
      expect(problem(odd)).toMatch(/no number/);
    }
    expect(problem(undefined)).toMatch(/no number/);
  });
});

describe("requests that were taken", () => {
  test("are known for as long as their time could still be right", () => {
    let nowMs = 0;
    const replays = createReplays(() => nowMs);
    replays.add("a");
    nowMs = 9 * 60_000;
    replays.add("b");
    expect([replays.has("a"), replays.has("b"), replays.has("c")]).toEqual([true, true, false]);
    nowMs = 11 * 60_000;
    replays.add("c");
    expect([replays.has("a"), replays.has("b"), replays.has("c")]).toEqual([false, true, true]);
  });

  test("are no more than fit", () => {
    const replays = createReplays(() => 0);
    for (let count = 0; count <= 10_000; count++) replays.add(`${count}`);
    expect([replays.has("0"), replays.has("1"), replays.has("10000")]).toEqual([false, true, true]);
  });
});
