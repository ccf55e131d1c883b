import { describe, expect, test } from "vitest";
import type { Written } from "../../src/pacing/call.ts";
import {
  applyEnd,
  applySend,
  applyText,
  applyWritten,
  createReplyState,
  isWaiting,
  toArea,
  toBacklog,
} from "../../src/pacing/reply-state.ts";

const ACCEPTED: Written = { answer: { ok: true }, behind: false };

function replyWith(...texts: Array<[at: number, units: number]>) {
  const reply = createReplyState("room");
  for (const [at, units] of texts) applyText(reply, units, at);
  return reply;
}

describe("reply state", () => {
  test("adds up what is unseen over time", () => {
    const reply = replyWith([0, 4], [1, 4]);
    expect(toBacklog(reply)).toBe(8);
    expect(toArea(reply, 2)).toBe(4 + 8);
    expect(reply.oldest).toBe(0);
    applySend(reply, "post", 2);
    expect([toBacklog(reply), toArea(reply, 3), reply.oldest]).toEqual([0, 0, Infinity]);
    expect(isWaiting(reply)).toBe(false);
  });

  test("finds the rate of steady text, and a pause counts half a second at most", () => {
    const reply = createReplyState("room");
    for (let token = 0; token < 600; token++) applyText(reply, 4, token / 60);
    expect(reply.rate).toBeGreaterThan(230);
    expect(reply.rate).toBeLessThan(250);
    expect(reply.arrivalGap).toBeCloseTo(1 / 60);
    applyText(reply, 4, 60);
    expect(reply.rate).toBeGreaterThan(200);
  });

  test("does not take deltas of one network read for a gap", () => {
    const reply = replyWith([0, 4], [0.001, 4]);
    expect(reply.arrivalGap).toBeUndefined();
    applyText(reply, 4, 5);
    expect(reply.arrivalGap).toBe(2);
  });

  test("gives back what a failed call carried, as if it had never been made", () => {
    const reply = replyWith([0, 4], [1, 4]);
    applySend(reply, "post", 1);
    applyText(reply, 4, 2);
    applyWritten(reply, { answer: { ok: false }, behind: true }, 3);
    expect(toBacklog(reply)).toBe(12);
    expect(toArea(reply, 3)).toBe(4 + 8 * 2 + 4 * 1);
    expect(reply.oldest).toBe(0);
    expect(reply.next).toBe("post");
    expect(reply.notBefore).toBe(3.5);
  });

  test("waits longer with each failure and not at all for a refusal", () => {
    const reply = replyWith([0, 4]);
    for (const [failure, wait] of [0.5, 1, 2].entries()) {
      applySend(reply, "post", failure);
      applyWritten(reply, { answer: { ok: false }, behind: true }, failure);
      expect(reply.notBefore).toBe(failure + wait);
    }
    applySend(reply, "post", 10);
    applyWritten(reply, { answer: { ok: false, retryAfter: 3 }, behind: true }, 10);
    expect(reply.notBefore).toBe(4);
    applySend(reply, "post", 13);
    applyWritten(reply, ACCEPTED, 13);
    expect([reply.failures, reply.next, isWaiting(reply)]).toEqual([0, "edit", false]);
  });

  test("owes a call after the end until one that began afterwards showed everything", () => {
    const reply = replyWith([0, 4]);
    applySend(reply, "post", 0);
    applyEnd(reply);
    applyWritten(reply, ACCEPTED, 1);
    expect(isWaiting(reply)).toBe(true);
    applySend(reply, "final", 1);
    applyWritten(reply, { answer: { ok: true }, behind: true, next: "post" }, 2);
    expect([isWaiting(reply), reply.next]).toEqual([true, "post"]);
    applySend(reply, "post", 2);
    applyWritten(reply, { answer: { ok: false }, behind: true }, 3);
    expect(isWaiting(reply)).toBe(true);
    applySend(reply, "post", 4);
    applyWritten(reply, ACCEPTED, 5);
    expect(isWaiting(reply)).toBe(false);
  });

  test("owes the rest of text that did not fit in one message, not what came meanwhile", () => {
    const reply = replyWith([0, 4]);
    applySend(reply, "post", 0);
    applyWritten(reply, { answer: { ok: true }, behind: true }, 1);
    expect(reply.owes).toBe(true);
    applySend(reply, "edit", 1);
    applyText(reply, 4, 1.5);
    applyWritten(reply, { answer: { ok: true }, behind: true }, 2);
    expect(reply.owes).toBe(false);
    applySend(reply, "edit", 2);
    applyText(reply, 4, 2.5);
    applyWritten(reply, { answer: { ok: true }, behind: true, next: "post" }, 3);
    expect(reply.owes).toBe(true);
  });

  test("ignores an answer to no call", () => {
    const reply = replyWith([0, 4]);
    applyWritten(reply, ACCEPTED, 1);
    expect(toBacklog(reply)).toBe(4);
  });
});
