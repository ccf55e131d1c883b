import { describe, expect, test } from "vitest";
import { createEvenPacer } from "../../src/pacing/even.ts";
import type { Written } from "../../src/port/pace.ts";

const ACCEPTED: Written = { answer: { ok: true }, behind: false };

describe("the even pacer of replies", () => {
  test("the even pacer sends the first text at once and the next one a gap later", () => {
    const pacer = createEvenPacer({ gapMs: 1_000 });
    const reply = pacer.join();
    expect(pacer.step(0)).toEqual({ type: "idle" });
    pacer.text(reply, 4, 10_000);
    expect(pacer.step(10_000)).toEqual({ type: "send", reply, kind: "post" });
    pacer.text(reply, 4, 10_100);
    expect(pacer.step(10_100)).toEqual({ type: "idle" });
    pacer.done(reply, ACCEPTED, 10_200);
    expect(pacer.step(10_200)).toEqual({ type: "wait", until: 11_000 });
    expect(pacer.step(11_000)).toEqual({ type: "send", reply, kind: "edit" });
  });

  test("the replies of a budget take turns", () => {
    const pacer = createEvenPacer({ gapMs: 1_000 });
    const replies = [pacer.join(), pacer.join(), pacer.join()];
    const order: number[] = [];
    for (let now = 0; now < 9_000; now += 1_000) {
      for (const reply of replies) pacer.text(reply, 1, now);
      const step = pacer.step(now);
      if (step.type !== "send") throw new Error("Nothing was sent.");
      order.push(step.reply);
      pacer.done(step.reply, ACCEPTED, now);
    }
    expect(order).toEqual([1, 2, 3, 1, 2, 3, 1, 2, 3]);
  });

  test("each reply grows at its own pace, and its end waits only for the gap", () => {
    const pacer = createEvenPacer({ gapMs: 10, replyGapMs: 120 });
    const [one, other] = [pacer.join(), pacer.join()];
    pacer.text(one, 1, 0);
    expect(pacer.step(0)).toEqual({ type: "send", reply: one, kind: "post" });
    pacer.done(one, ACCEPTED, 0);
    pacer.text(one, 1, 0);
    pacer.text(other, 1, 0);
    expect(pacer.step(10)).toEqual({ type: "send", reply: other, kind: "post" });
    expect(pacer.step(20)).toEqual({ type: "wait", until: 120 });
    pacer.end(one);
    expect(pacer.step(30)).toEqual({ type: "send", reply: one, kind: "edit" });
  });

  test("finals come before first posts, and first posts before edits", () => {
    const pacer = createEvenPacer({ gapMs: 1_000 });
    const [editing, posting, ending] = [pacer.join(), pacer.join(), pacer.join()];
    for (const [index, reply] of [editing, ending].entries()) {
      const now = index * 1_000;
      pacer.text(reply, 1, now);
      expect(pacer.step(now)).toMatchObject({ reply });
      pacer.done(reply, ACCEPTED, now);
    }
    for (const reply of [editing, posting, ending]) pacer.text(reply, 1, 2_000);
    pacer.end(ending);
    expect([2_000, 3_000, 4_000].map((now) => pacer.step(now))).toMatchObject([
      { reply: ending },
      { reply: posting },
      { reply: editing },
    ]);
  });

  test("the even pacer starts nothing before the wait of a rate limit", () => {
    const pacer = createEvenPacer({ gapMs: 1_000 });
    const [first, second] = [pacer.join(), pacer.join()];
    pacer.text(first, 1, 0);
    pacer.step(0);
    pacer.text(second, 1, 0);
    pacer.done(first, { answer: { ok: false, retryAfterMs: 30_000 }, behind: true }, 500);
    expect(pacer.step(500)).toEqual({ type: "wait", until: 30_500 });
    expect(pacer.keepUntil()).toBe(30_500);
    expect(pacer.step(30_500)).toMatchObject({ type: "send", kind: "post" });
  });

  test("the even pacer repeats a failed call with growing pauses", () => {
    const pacer = createEvenPacer({ gapMs: 0 });
    const reply = pacer.join();
    pacer.text(reply, 1, 0);
    const waits: number[] = [];
    let now = 0;
    for (let attempt = 0; attempt < 6; attempt++) {
      expect(pacer.step(now)).toMatchObject({ type: "send", kind: "post" });
      pacer.done(reply, { answer: { ok: false }, behind: true }, now);
      const step = pacer.step(now);
      if (step.type !== "wait") throw new Error("It did not wait.");
      waits.push(step.until - now);
      now = step.until;
    }
    expect(waits).toEqual([500, 1_000, 2_000, 4_000, 8_000, 8_000]);
  });

  test("the even pacer continues while a reply is behind, with the kind of call that the reply needs next", () => {
    const pacer = createEvenPacer({ gapMs: 1_000 });
    const reply = pacer.join();
    pacer.text(reply, 1, 0);
    pacer.step(0);
    pacer.done(reply, { answer: { ok: true }, behind: true, next: "post" }, 100);
    expect(pacer.step(1_000)).toEqual({ type: "send", reply, kind: "post" });
  });

  test("an ended reply makes one more call, and an abandoned reply makes none", () => {
    const pacer = createEvenPacer({ gapMs: 1_000 });
    const reply = pacer.join();
    pacer.text(reply, 1, 0);
    pacer.step(0);
    pacer.done(reply, ACCEPTED, 100);
    pacer.end(reply);
    expect(pacer.step(1_000)).toMatchObject({ type: "send", reply });
    pacer.leave(reply);
    pacer.done(reply, { answer: { ok: false }, behind: true }, 1_200);
    expect(pacer.step(60_000)).toEqual({ type: "idle" });
  });
});
