import { describe, expect, test } from "vitest";
import { createSlackPacer } from "../../../../adapters/slack/write/pace.ts";
import { mix, several } from "../../../../lab/pacing/scenarios.ts";
import { NO_WRONGS, SLACK_TRIP_MS, toWrongs, trySlack } from "../../../../lab/pacing/trials.ts";
import type { Pacer, PacerStep } from "../../../../src/port/pace.ts";

const OK = { answer: { ok: true }, behind: false } as const;

/** Steps the pacer until no call is due. */
function sendAll(pacer: Pacer, now: number): Array<PacerStep & { type: "send" }> {
  const sent: Array<PacerStep & { type: "send" }> = [];
  for (let step = pacer.step(now); step.type === "send"; step = pacer.step(now)) sent.push(step);
  return sent;
}

/** A reply that starts and immediately gets a response. */
function begin(pacer: Pacer, now: number): PacerStep & { type: "send" } {
  const reply = pacer.join();
  pacer.text(reply, 50, now);
  const [step] = sendAll(pacer, now + 110);
  if (step === undefined) throw new Error("The reply was not begun.");
  pacer.done(step.reply, { ...OK, isFallback: step.isFallback === true }, now + 110);
  return step;
}

describe("the pacer for two ways to write", () => {
  test("the pacer starts replies in the preferred way while calls are left, and the others in the fallback at once", () => {
    const pacer = createSlackPacer();
    const begun = Array.from({ length: 25 }, (_, index) => begin(pacer, index * 1_000));
    expect(begun.map(({ isFallback }) => isFallback === true).indexOf(true)).toBe(19);
    expect(begun.slice(19).every(({ isFallback }) => isFallback === true)).toBe(true);
  });

  test("the pacer starts a reply in the fallback if the fallback has more calls left", () => {
    const pacer = createSlackPacer();
    const replies = Array.from({ length: 6 }, (_, index) => pacer.join({ room: `room ${index}` }));
    for (const reply of replies) pacer.text(reply, 10, 0);
    const begun = sendAll(pacer, 110);
    expect(begun).toHaveLength(6);
    expect(begun.filter(({ isFallback }) => isFallback === true)).toHaveLength(2);
  });

  test("the pacer keeps three simultaneous replies in the preferred way", () => {
    const pacer = createSlackPacer();
    for (let count = 0; count < 3; count++) pacer.text(pacer.join(), 10, 0);
    expect(sendAll(pacer, 110).map(({ isFallback }) => isFallback === true)).toEqual([false, false, false]);
  });

  test("the pacer keeps a reply in the way in which it started", () => {
    const pacer = createSlackPacer();
    const { reply } = begin(pacer, 0);
    for (let count = 1; count < 25; count++) begin(pacer, count * 1_000);
    pacer.end(reply);
    expect(sendAll(pacer, 30_000)).toContainEqual({ type: "send", reply, kind: "final" });
  });

  test("the pacer uses the fallback for a reply that is complete before its first post", () => {
    const pacer = createSlackPacer();
    const reply = pacer.join({ room: "general" });
    pacer.text(reply, 10, 0);
    pacer.end(reply);
    expect(sendAll(pacer, 50)).toEqual([{ type: "send", reply, kind: "post", isFallback: true }]);
  });

  test("when a reply switches to the fallback, the pacer keeps the reply's text and forgets its failures", () => {
    const pacer = createSlackPacer();
    const reply = pacer.join({ room: "general" });
    pacer.text(reply, 10, 0);
    expect(sendAll(pacer, 110)).toEqual([{ type: "send", reply, kind: "post" }]);
    pacer.done(reply, { answer: { ok: false }, behind: true, kind: "post", isFallback: true }, 300);
    expect(sendAll(pacer, 300)).toEqual([{ type: "send", reply, kind: "post", isFallback: true }]);
  });

  test("the pacer uses the fallback for a reply that cannot use the preferred way", () => {
    const pacer = createSlackPacer();
    const reply = pacer.join({ room: "general", isFallback: true });
    pacer.text(reply, 10, 0);
    expect(sendAll(pacer, 110)).toEqual([{ type: "send", reply, kind: "post", isFallback: true }]);
  });

  test("the pacer settles a call whose reply ended meanwhile", () => {
    const pacer = createSlackPacer();
    const [first, second] = [
      pacer.join({ room: "general", isFallback: true }),
      pacer.join({ room: "general", isFallback: true }),
    ];
    pacer.text(first, 10, 0);
    expect(sendAll(pacer, 110)).toHaveLength(1);
    pacer.leave(first);
    pacer.done(first, { ...OK, isFallback: true }, 300);
    pacer.text(second, 10, 300);
    // The channel is blocked for a second after the response, and not forever.
    expect(sendAll(pacer, 500)).toEqual([]);
    expect(sendAll(pacer, 1_310)).toHaveLength(1);
  });

  for (const [name, scenario] of Object.entries({
    "twenty a minute": mix(20),
    "twenty at once": several(20, 400, 60, 0),
  })) {
    test(`Slack refuses no call of the pacer, and the pacer delays no start: ${name}`, () => {
      for (const seed of [1, 2, 3]) {
        const result = trySlack({ scenario, seed, tripMs: SLACK_TRIP_MS }, "native");
        expect(toWrongs(result)).toEqual(NO_WRONGS);
        const waits = result.outcomes.map(
          ({ arrivals, showings }) => (showings[0]?.at ?? Infinity) - (arrivals[0] ?? 0),
        );
        expect(Math.max(...waits)).toBeLessThan(3_000);
      }
    });
  }
});
