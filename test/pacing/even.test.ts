import { describe, expect, test } from "vitest";
import type { Written } from "../../src/pacing/call.ts";
import { createEvenPacer } from "../../src/pacing/even.ts";

const ACCEPTED: Written = { answer: { ok: true }, behind: false };

describe("even pacer", () => {
  test("sends the first text at once and the next a gap later", () => {
    const pacer = createEvenPacer({ gap: 1 });
    const reply = pacer.join(0);
    expect(pacer.step(0)).toEqual({ type: "idle" });
    pacer.text(reply, 4, 10);
    expect(pacer.step(10)).toEqual({ type: "send", reply, kind: "post" });
    pacer.text(reply, 4, 10.1);
    expect(pacer.step(10.1)).toEqual({ type: "idle" });
    pacer.done(reply, ACCEPTED, 10.2);
    expect(pacer.step(10.2)).toEqual({ type: "wait", until: 11 });
    expect(pacer.step(11)).toEqual({ type: "send", reply, kind: "edit" });
  });

  test("lets the replies of a budget take turns", () => {
    const pacer = createEvenPacer({ gap: 1 });
    const replies = [pacer.join(0), pacer.join(0), pacer.join(0)];
    const order: number[] = [];
    for (let now = 0; now < 9; now++) {
      for (const reply of replies) pacer.text(reply, 1, now);
      const step = pacer.step(now);
      if (step.type !== "send") throw new Error("Nothing was sent.");
      order.push(step.reply);
      pacer.done(step.reply, ACCEPTED, now);
    }
    expect(order).toEqual([1, 2, 3, 1, 2, 3, 1, 2, 3]);
  });

  test("lets each reply grow at its own pace, and its end wait for nothing but the gap", () => {
    const pacer = createEvenPacer({ gap: 0.01, replyGap: 0.12 });
    const [one, other] = [pacer.join(0), pacer.join(0)];
    pacer.text(one, 1, 0);
    expect(pacer.step(0)).toEqual({ type: "send", reply: one, kind: "post" });
    pacer.done(one, ACCEPTED, 0);
    pacer.text(one, 1, 0);
    pacer.text(other, 1, 0);
    expect(pacer.step(0.01)).toEqual({ type: "send", reply: other, kind: "post" });
    expect(pacer.step(0.02)).toEqual({ type: "wait", until: 0.12 });
    pacer.end(one, 0.03);
    expect(pacer.step(0.03)).toEqual({ type: "send", reply: one, kind: "edit" });
  });

  test("prefers finals to first posts and those to edits", () => {
    const pacer = createEvenPacer({ gap: 1 });
    const [editing, posting, ending] = [pacer.join(0), pacer.join(0), pacer.join(0)];
    for (const [now, reply] of [editing, ending].entries()) {
      pacer.text(reply, 1, now);
      expect(pacer.step(now)).toMatchObject({ reply });
      pacer.done(reply, ACCEPTED, now);
    }
    for (const reply of [editing, posting, ending]) pacer.text(reply, 1, 2);
    pacer.end(ending, 2);
    expect([2, 3, 4].map((now) => pacer.step(now))).toMatchObject([
      { reply: ending },
      { reply: posting },
      { reply: editing },
    ]);
  });

  test("starts nothing before the wait that a refusal asked for", () => {
    const pacer = createEvenPacer({ gap: 1 });
    const [first, second] = [pacer.join(0), pacer.join(0)];
    pacer.text(first, 1, 0);
    pacer.step(0);
    pacer.text(second, 1, 0);
    pacer.done(first, { answer: { ok: false, retryAfter: 30 }, behind: true }, 0.5);
    expect(pacer.step(0.5)).toEqual({ type: "wait", until: 30.5 });
    expect(pacer.keepUntil()).toBe(30.5);
    expect(pacer.step(30.5)).toMatchObject({ type: "send", kind: "post" });
  });

  test("repeats a failed call later and later", () => {
    const pacer = createEvenPacer({ gap: 0 });
    const reply = pacer.join(0);
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
    expect(waits).toEqual([0.5, 1, 2, 4, 8, 8]);
  });

  test("goes on while a reply is behind, with the kind of call it names", () => {
    const pacer = createEvenPacer({ gap: 1 });
    const reply = pacer.join(0);
    pacer.text(reply, 1, 0);
    pacer.step(0);
    pacer.done(reply, { answer: { ok: true }, behind: true, next: "post" }, 0.1);
    expect(pacer.step(1)).toEqual({ type: "send", reply, kind: "post" });
  });

  test("makes one more call after the end, and none for a reply that left", () => {
    const pacer = createEvenPacer({ gap: 1 });
    const reply = pacer.join(0);
    pacer.text(reply, 1, 0);
    pacer.step(0);
    pacer.done(reply, ACCEPTED, 0.1);
    pacer.end(reply, 0.2);
    expect(pacer.step(1)).toMatchObject({ type: "send", reply });
    pacer.leave(reply, 1.1);
    pacer.done(reply, { answer: { ok: false }, behind: true }, 1.2);
    expect(pacer.step(60)).toEqual({ type: "idle" });
  });
});
