import { describe, expect, test } from "vitest";
import { recordingLog } from "../../lab/support/log.ts";
import { createSecretGuard, type TrySource } from "../../src/http/secret-guard.ts";

const SECRET = "correct horse";

function setUp() {
  let now = 1_000_000;
  let guesses = 0;
  const { log, lines } = recordingLog();
  const { judge } = createSecretGuard({ secret: SECRET, name: "password", log, now: () => now });
  return {
    lines,
    advance: (ms: number) => void (now += ms),
    /** Checks one more guess. */
    guess: (source: TrySource) => judge(`canary-${guesses++}`, source).kind,
    again: (source: TrySource) => judge("canary-old", source).kind,
    enter: (source: TrySource) => judge(SECRET, source).kind,
    waitMs(source: TrySource) {
      const verdict = judge(SECRET, source);
      return verdict.kind === "wait" ? verdict.waitMs : 0;
    },
    /** Counts how many guesses from one tireless source are checked within this time. */
    countJudged(source: () => TrySource, durationMs: number) {
      let judged = 0;
      for (let ms = 0; ms < durationMs; ms += 10) {
        if (judge(`canary-${guesses++}`, source()).kind === "wrong") judged += 1;
        now += 10;
      }
      return judged;
    },
  };
}

const owner: TrySource = { address: "8.8.8.8" };
const attacker: TrySource = { address: "9.9.9.9" };

describe("an address that guesses", () => {
  test("an address can guess a few times, then waits longer each time, up to a minute", () => {
    const { guess, waitMs, advance } = setUp();
    for (let n = 0; n < 5; n++) expect(guess(attacker)).toBe("wrong");
    expect(waitMs(attacker)).toBe(0);
    const waits: number[] = [];
    for (let n = 0; n < 8; n++) {
      expect(guess(attacker)).toBe("wrong");
      waits.push(waitMs(attacker));
      advance(waits.at(-1) ?? 0);
    }
    expect(waits).toEqual([1, 2, 4, 8, 16, 32, 60, 60].map((seconds) => seconds * 1_000));
  });

  test("the guard checks a dozen guesses of an address in five minutes, and then rejects even the right secret", () => {
    const { countJudged, guess, enter, advance } = setUp();
    expect(countJudged(() => attacker, 5 * 60_000)).toBeLessThan(20);
    guess(attacker);
    expect(enter(attacker)).toBe("wait");
    advance(60_000);
    expect(enter(attacker)).toBe("right");
  });

  test("an address starts over after 15 minutes without guesses", () => {
    const { countJudged, guess, waitMs, advance } = setUp();
    countJudged(() => attacker, 60_000);
    advance(15 * 60_000);
    expect(guess(attacker)).toBe("wrong");
    expect(waitMs(attacker)).toBe(0);
  });

  test("the guard counts a repeated wrong secret once, as an open page sends it", () => {
    const { again, enter, lines } = setUp();
    for (let n = 0; n < 100; n++) expect(again(owner)).toBe("wrong");
    expect(enter(owner)).toBe("right");
    expect(lines).toHaveLength(1);
  });
});

describe("guesses from many addresses", () => {
  const spread = () => {
    let n = 0;
    return () => ({ address: `9.9.${n >> 8}.${n++ & 255}` });
  };

  test("the guard checks one guess a second from many addresses, after the first sixty", () => {
    const { countJudged } = setUp();
    expect(countJudged(spread(), 100_000)).toBeLessThanOrEqual(60 + 101);
  });

  test("guesses from many addresses lock out no known address, and no one once they end", () => {
    const { countJudged, guess, enter, advance } = setUp();
    expect(enter(owner)).toBe("right");
    countJudged(spread(), 60_000);
    expect(enter(owner)).toBe("right");
    guess({ address: "9.10.0.1" });
    expect(enter({ address: "7.7.7.7" })).toBe("wait");
    advance(1_000);
    expect(enter({ address: "7.7.7.7" })).toBe("right");
  });

  test("the owner gets in from a new address, after the requested wait, while others guess", () => {
    const { countJudged, guess, enter } = setUp();
    const guesses = spread();
    countJudged(guesses, 100_000);
    const tries = [];
    for (let n = 0; n < 5; n++) {
      // Each time, a guess arrives before the owner's attempt.
      guess(guesses());
      tries.push(enter({ address: "7.7.7.7" }));
      countJudged(guesses, 2_000);
    }
    expect(tries.slice(0, 4)).toEqual(["wait", "wait", "wait", "right"]);
  });

  test("waiting earns many addresses only one more guess a second", () => {
    const { countJudged } = setUp();
    let n = 0;
    expect(countJudged(() => ({ address: `9.9.9.${n++ % 250}` }), 300_000)).toBeLessThanOrEqual(60 + 2 * 301);
  });
});

describe("a browser that knows the secret", () => {
  test("a known browser gets in while everyone else behind its proxy waits", () => {
    const { countJudged, guess, enter } = setUp();
    countJudged(() => attacker, 60_000);
    guess(attacker);
    expect(enter(attacker)).toBe("wait");
    expect(enter({ ...attacker, browser: "b1" })).toBe("right");
  });

  test("the guard counts a known browser's guesses separately", () => {
    const { countJudged, enter } = setUp();
    expect(countJudged(() => ({ ...owner, browser: "b1" }), 5 * 60_000)).toBeLessThan(20);
    expect(enter({ ...owner, browser: "b2" })).toBe("right");
    expect(enter(owner)).toBe("right");
  });
});

describe("the log of the guard", () => {
  test("the log has a line with the source of each checked guess, but not the guess", () => {
    const { countJudged, lines } = setUp();
    const judged = countJudged(() => attacker, 60_000);
    expect(lines).toHaveLength(judged);
    expect(lines[7]).toMatchObject({
      level: 40,
      source: "9.9.9.9",
      tries: 8,
      pauseMs: 4_000,
      msg: "a wrong password was given",
    });
    expect(lines.reduce((sum, { refusedBefore }) => sum + Number(refusedBefore), 0)).toBeGreaterThan(1_000);
    expect(JSON.stringify(lines)).not.toMatch(/canary|horse/);
  });

  test("the log counts the unchecked guesses next to each checked one", () => {
    const { countJudged, guess, advance, lines } = setUp();
    let n = 0;
    const judged = countJudged(() => ({ address: `9.9.${n >> 8}.${n++ & 255}` }), 60_000);
    advance(1_000);
    guess(attacker);
    expect(lines).toHaveLength(judged + 1);
    expect(lines.reduce((sum, { refusedBefore }) => sum + Number(refusedBefore), 0)).toBe(6_000 - judged);
  });
});
