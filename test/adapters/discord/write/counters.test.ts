import { describe, expect, test } from "vitest";
import {
  createFixedCounter,
  createLeakyCounter,
  createLoggedCounter,
  createOwnCalls,
  type Rule,
} from "../../../../adapters/discord/write/counters.ts";

describe("the record of the bot's own calls", () => {
  const open = (at: number, kind: "post" | "edit" = "edit") => ({ at, kind, answeredAt: Infinity });

  test("the record of own calls knows which calls were in flight together", () => {
    const calls = createOwnCalls();
    for (const at of [0, 1_000, 5_000]) calls.add(open(at));
    calls.answered(0, "edit", 2_000);
    expect(calls.overlapping(0, 2_000)).toBe(1);
    calls.answered(1_000, "edit", 3_000);
    expect(calls.overlapping(1_000, 3_000)).toBe(1);
    calls.answered(5_000, "edit", 6_000);
    expect(calls.overlapping(5_000, 6_000)).toBe(0);
  });

  test("the record of own calls distinguishes two calls at the same time", () => {
    const calls = createOwnCalls();
    calls.add(open(0, "post"));
    calls.add(open(0, "edit"));
    calls.answered(0, "edit", 1_000);
    expect(calls.unanswered()).toBe(1);
    expect(calls.overlapping(0, 1_000)).toBe(1);
    expect(calls.remove(0, "post")).toEqual(open(0, "post"));
    expect(calls.remove(0, "post")).toBeUndefined();
    expect(calls.unanswered()).toBe(0);
  });

  test("the record of own calls counts the calls since a time, including those in flight then", () => {
    const calls = createOwnCalls();
    for (const at of [0, 1_000, 2_000, 3_000]) calls.add(open(at));
    calls.answered(0, "edit", 1_000);
    calls.answered(1_000, "edit", 2_500);
    expect(calls.since(2_000)).toBe(3);
    expect(calls.last()).toBe(3_000);
  });

  test("the record of own calls forgets completed calls after a while, but never calls in flight", () => {
    const calls = createOwnCalls();
    calls.add(open(0));
    calls.add(open(1_000));
    calls.answered(0, "edit", 1_000);
    calls.prune(12_000, 1_000);
    expect(calls.all()).toHaveLength(2);
    calls.prune(100_000, 1_000);
    expect(calls.all()).toEqual([open(1_000)]);
  });
});

describe("a fixed rate-limit counter", () => {
  /** A counter for 5 calls per 5 s, with its calls. The test decides when its windows start. */
  function fixed() {
    const rule: Rule = { limit: 5, windowMs: 5_000, tripMs: 200, calls: createOwnCalls() };
    const counter = createFixedCounter(rule);

    function send(at: number): void {
      rule.calls.add({ at, kind: "edit", answeredAt: Infinity });
      counter.sent(at);
    }

    function answer(sentAt: number, remaining: number, resetMs: number): void {
      const answeredAt = sentAt + 200;
      rule.calls.answered(sentAt, "edit", answeredAt);
      const inFlight = rule.calls.overlapping(sentAt, answeredAt);
      const [resetFrom, resetUntil] = [sentAt + resetMs, answeredAt + resetMs];
      counter.observe({ kind: "edit", sentAt, answeredAt, resetMs, remaining, resetFrom, resetUntil, inFlight });
    }

    function call(at: number, remaining: number, resetMs: number): void {
      send(at);
      answer(at, remaining, resetMs);
    }

    return { counter, send, answer, call };
  }

  test("a fixed counter opens a window with one call and waits for the call's response", () => {
    const { counter, send, answer } = fixed();
    expect(counter.credit(0)).toBe(1);
    send(0);
    expect(counter.isOpening(0)).toBe(true);
    expect(counter.credit(100)).toBe(0);
    answer(0, 4, 4_900);
    expect(counter.isOpening(0)).toBe(false);
    expect([200, 5_000, 5_200].map(counter.credit)).toEqual([4, 4, 1]);
  });

  test("a fixed counter plans a new window with the full limit after it has seen one window restart", () => {
    const { counter, call } = fixed();
    call(0, 4, 4_900);
    call(3_000, 3, 1_900);
    call(5_200, 4, 4_900);
    expect(counter.credit(5_400)).toBe(4);
    expect(counter.credit(10_400)).toBe(5);
  });

  test("a fixed counter keeps its window if a refusal's wait ends inside that window, because another limit refused the call", () => {
    const { counter, call, send } = fixed();
    call(0, 4, 4_900);
    for (const [at, remaining] of [
      [1_000, 3],
      [2_000, 2],
    ] as const) {
      call(at, remaining, 4_900 - at);
    }
    send(3_000);
    counter.refused(4_000);
    expect(counter.credit(4_000)).toBe(1);
    send(4_000);
    expect(counter.credit(4_500)).toBe(0);
    expect(counter.credit(5_200)).toBe(1);
  });

  test("a fixed counter is refuted by a window that starts with less than its limit", () => {
    const { counter, call } = fixed();
    call(0, 4, 4_900);
    call(3_000, 3, 1_900);
    call(5_200, 3, 2_800);
    expect(counter.isRefuted()).toBe(true);
  });

  test("a fixed counter accepts that a window started earlier than assumed", () => {
    const { counter, call } = fixed();
    call(0, 4, 4_900);
    call(4_950, 4, 4_900);
    expect([5_200, 10_000].map(counter.credit)).toEqual([4, 4]);
  });

  test("a fixed counter never raises the calls left inside a window, and ignores responses about an earlier window", () => {
    const { counter, call, answer } = fixed();
    call(0, 4, 4_900);
    call(1_000, 1, 3_900);
    expect(counter.credit(1_200)).toBe(1);
    call(2_000, 3, 2_900);
    expect(counter.credit(2_200)).toBe(0);
    answer(-1_000, 4, 9_000);
    expect(counter.credit(2_200)).toBe(0);
  });

  test("a fixed counter plans one call to test the limit when a refusal is over", () => {
    const { counter } = fixed();
    counter.adopt({ startedAt: 0, resetAt: 5_000, used: 1 });
    expect(counter.credit(1_000)).toBe(4);
    counter.refused(6_000);
    expect([1_000, 6_000].map(counter.credit)).toEqual([0, 1]);
  });

  test("a fixed counter spreads the remaining calls evenly until the end of the window", () => {
    const { counter, call } = fixed();
    expect(counter.gap(0)).toBe(350);
    call(0, 4, 4_900);
    expect(counter.gap(200)).toBeCloseTo(5_100 / 5);
    expect(counter.returns()[0]).toBeCloseTo(5_100);
  });
});

describe("a leaky rate-limit counter", () => {
  const rule = (): Rule => ({ limit: 5, windowMs: 5_000, tripMs: 0, calls: createOwnCalls() });
  const answer = {
    kind: "edit",
    sentAt: 0,
    answeredAt: 200,
    resetMs: 2_000,
    remaining: 3,
    resetFrom: 2_000,
    resetUntil: 2_200,
    inFlight: 0,
  } as const;

  test("a leaky counter fills with each call and drains one per spacing", () => {
    const counter = createLeakyCounter(rule());
    expect(counter.credit(0)).toBe(5);
    for (let call = 0; call < 5; call++) counter.sent(0);
    expect([0, 500, 1_000, 2_500, 5_000].map(counter.credit)).toEqual([0, 0, 1, 2, 5]);
    expect(counter.level(500)).toBeCloseTo(0.5);
    expect(counter.returns()).toContain(1_000);
  });

  test("a leaky counter trusts the header, and adds the calls in flight", () => {
    const counter = createLeakyCounter(rule());
    counter.observe(answer);
    expect(counter.credit(200)).toBe(3);
    counter.observe({ ...answer, inFlight: 2 });
    expect(counter.credit(200)).toBe(1);
  });

  test("a leaky counter plans one call when a refusal is over", () => {
    const counter = createLeakyCounter(rule());
    counter.refused(10_000);
    expect([10_000, 11_000].map(counter.credit)).toEqual([1, 2]);
  });

  test("a leaky counter plans calls closer together while many calls are left", () => {
    const counter = createLeakyCounter(rule());
    expect(counter.gap(0)).toBeCloseTo(1 / (1 / 1_000 + 3.5 / 2_000));
    for (let call = 0; call < 4; call++) counter.sent(0);
    expect(counter.gap(0)).toBe(1_000);
  });
});

describe("a rate-limit counter that logs its calls", () => {
  function counterWith(times: number[]) {
    const rule: Rule = { limit: 5, windowMs: 5_000, tripMs: 0, calls: createOwnCalls() };
    const counter = createLoggedCounter(rule);
    const call = (at: number) => {
      rule.calls.add({ at, kind: "edit", answeredAt: at });
      counter.sent(at);
    };
    for (const at of times) call(at);
    return { counter, call };
  }

  const answer = {
    kind: "edit",
    sentAt: 0,
    answeredAt: 200,
    resetMs: 5_000,
    remaining: 4,
    resetFrom: 5_000,
    resetUntil: 5_200,
    inFlight: 0,
  } as const;

  test("a logged counter counts the bot's calls of the last window plus a margin", () => {
    const { counter } = counterWith([0, 1_000, 2_000, 3_000, 4_000]);
    expect([4_000, 5_100, 5_200, 6_200].map(counter.credit)).toEqual([0, 0, 1, 2]);
  });

  test("a logged counter trusts a header that reports less, until its window ends", () => {
    const { counter, call } = counterWith([0]);
    counter.observe({ ...answer, remaining: 2, inFlight: 1 });
    expect(counter.credit(1_000)).toBe(1);
    call(1_000);
    expect(counter.credit(1_000)).toBe(0);
    expect(counter.credit(5_200)).toBe(4);
  });

  test("a logged counter forgets a call when the only window that contained it ends", () => {
    const { counter } = counterWith([0]);
    counter.observe({ ...answer, resetMs: 1_000, resetUntil: 1_200, resetFrom: 1_000 });
    expect([1_000, 1_300].map(counter.credit)).toEqual([4, 5]);
  });

  test("a logged counter spreads the free calls evenly until the oldest call expires", () => {
    expect(counterWith([]).counter.gap(0)).toBe(350);
    expect(counterWith([0]).counter.gap(0)).toBeCloseTo(5_120 / 5);
    expect(counterWith([0, 1_000, 2_000, 3_000, 4_000]).counter.gap(4_000)).toBeCloseTo(1_120);
  });
});
