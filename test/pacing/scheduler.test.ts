import { afterEach, describe, expect, test, vi } from "vitest";
import { createDiscordBudget, createDiscordShared } from "../../adapters/discord/write/pace.ts";
import { createSlackPacer } from "../../adapters/slack/write/pace.ts";
import { fixedCounter } from "../../lab/pacing/platform.ts";
import { createEvenPacer } from "../../src/pacing/even.ts";
import { createPacer } from "../../src/pacing/pacer.ts";
import type { Pace, Paced } from "../../src/pacing/scheduler.ts";
import { createScheduler, LOOK_MS } from "../../src/pacing/scheduler.ts";
import type { Pacer, Written } from "../../src/port/pace.ts";
import { eventually } from "../support/eventually.ts";

const ACCEPTED: Written = { answer: { ok: true }, behind: false };
const never = new AbortController().signal;

function heldReply() {
  const calls: Array<PromiseWithResolvers<Written>> = [];
  let begun = Promise.withResolvers<void>();
  const paced: Paced = {
    write() {
      const call = Promise.withResolvers<Written>();
      calls.push(call);
      begun.resolve();
      return call.promise;
    },
  };
  return {
    paced,
    calls,
    /** Waits for the call with this number and ends it. */
    async answer(index: number, written: Written = ACCEPTED): Promise<void> {
      while (calls.length <= index) {
        await begun.promise;
        begun = Promise.withResolvers();
      }
      calls[index]?.resolve(written);
    },
  };
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms));
}

/** A scheduler whose budgets differ only in their keys. `pacerFor` creates the pacer of each. */
function quick(pacerFor: (key: string) => Pacer = () => createEvenPacer({ gapMs: 0 })) {
  const scheduler = createScheduler({ now: () => performance.now() });
  const join = (key: string, paced: Paced) => scheduler.join({ key, createPacer: () => pacerFor(key) }, paced);
  return { join, close: scheduler.close };
}

afterEach(() => void vi.useRealTimers());

describe("the scheduler of replies", () => {
  test("the scheduler writes while text grows, and its last write starts after the end of the text", async () => {
    const reply = heldReply();
    const pace = quick().join("channel", reply.paced);
    pace.text(5);
    expect(reply.calls).toHaveLength(1);
    pace.text(5);
    const ended = pace.end(never);
    expect(reply.calls).toHaveLength(1);
    await reply.answer(0);
    await reply.answer(1);
    await ended;
    expect(reply.calls).toHaveLength(2);
  });

  test("the scheduler makes the final write even if everything was already shown", async () => {
    const reply = heldReply();
    const pace = quick().join("channel", reply.paced);
    pace.text(5);
    await reply.answer(0);
    const ended = pace.end(never);
    await reply.answer(1);
    await ended;
    expect(reply.calls).toHaveLength(2);
  });

  test("the scheduler continues after the end until an accepted write shows everything", async () => {
    const reply = heldReply();
    const pace = quick().join("channel", reply.paced);
    const ended = pace.end(never);
    await reply.answer(0, { answer: { ok: true }, behind: true, next: "post" });
    await reply.answer(1, { answer: { ok: false, retryAfterMs: 10 }, behind: true });
    await reply.answer(2);
    await ended;
    expect(reply.calls).toHaveLength(3);
  });

  test("the replies of a budget share one pace, and budgets share nothing", () => {
    const scheduler = quick(() => createEvenPacer({ gapMs: 1_000_000 }));
    const replies = [heldReply(), heldReply(), heldReply()];
    const keys = ["one", "one", "other"];
    const paces = replies.map(({ paced }, index) => scheduler.join(keys[index] ?? "", paced));
    for (const pace of paces) pace.text(1);
    expect(replies.map(({ calls }) => calls.length)).toEqual([1, 0, 1]);
    scheduler.close();
  });

  test("text that arrives while a reply waits is scheduled once, and the first text of another reply at once", async () => {
    vi.useFakeTimers();
    const pacer = createPacer(createDiscordBudget(createDiscordShared()));
    const step = vi.spyOn(pacer, "step");
    const scheduler = createScheduler({ now: () => Date.now() });
    const join = (paced: Paced) => scheduler.join({ key: "channel", createPacer: () => pacer }, paced);
    const [one, other] = [join(heldReply().paced), join(heldReply().paced)];
    one.text(4);
    expect(step).toHaveBeenCalledTimes(1);
    for (let piece = 0; piece < 50; piece++) one.text(4);
    expect(step).toHaveBeenCalledTimes(1);
    other.text(4);
    expect(step).toHaveBeenCalledTimes(2);
    for (let piece = 0; piece < 50; piece++) one.text(4);
    expect(step).toHaveBeenCalledTimes(2);
    await vi.advanceTimersByTimeAsync(LOOK_MS);
    expect(step.mock.calls.length).toBeGreaterThan(2);
    scheduler.close();
  });

  test("the scheduler wakes up when the next write is due", async () => {
    const reply = heldReply();
    const scheduler = quick(() => createEvenPacer({ gapMs: 20 }));
    const pace = scheduler.join("channel", reply.paced);
    pace.text(1);
    await reply.answer(0);
    pace.text(1);
    await reply.answer(1);
    expect(reply.calls).toHaveLength(2);
    pace.leave();
  });

  test("the scheduler accepts text that is reported during a write", async () => {
    const reply = heldReply();
    const joined: { pace?: Pace } = {};
    const paced: Paced = {
      write() {
        if (reply.calls.length === 0) joined.pace?.text(1);
        return reply.paced.write();
      },
    };
    joined.pace = quick().join("channel", paced);
    joined.pace.text(1);
    expect(reply.calls).toHaveLength(1);
    await reply.answer(0);
    await reply.answer(1);
    joined.pace.leave();
  });

  test("ending a reply rejects with the reason of the reply's signal, and then no call starts", async () => {
    const reply = heldReply();
    const pace = quick().join("channel", reply.paced);
    const controller = new AbortController();
    const ended = pace.end(controller.signal);
    controller.abort(new Error("too late"));
    await expect(ended).rejects.toThrow("too late");
    reply.calls[0]?.resolve({ answer: { ok: false }, behind: true });
    pace.text(1);
    expect(reply.calls).toHaveLength(1);
    await expect(pace.end(never)).rejects.toThrow(/no longer paced/);
    await expect(pace.end(AbortSignal.abort(new Error("before")))).rejects.toThrow("before");
  });

  test("abandoning a reply rejects its pending end", async () => {
    const reply = heldReply();
    const pace = quick().join("channel", reply.paced);
    const ended = pace.end(never);
    await expect(pace.end(never)).rejects.toThrow(/no longer paced/);
    pace.leave();
    await expect(ended).rejects.toThrow("abandoned");
  });

  test("closing the scheduler rejects pending ends, and nothing starts after that", async () => {
    const reply = heldReply();
    const scheduler = quick();
    const pace = scheduler.join("channel", reply.paced);
    const ended = pace.end(never);
    scheduler.close();
    await expect(ended).rejects.toThrow("was closed");
    pace.text(1);
    reply.calls[0]?.resolve(ACCEPTED);
    expect(reply.calls).toHaveLength(1);
  });

  test("the scheduler repeats a write that rejects unexpectedly", async () => {
    let attempts = 0;
    const paced: Paced = {
      async write() {
        attempts += 1;
        if (attempts === 1) throw new Error("against the contract");
        return ACCEPTED;
      },
    };
    await quick().join("channel", paced).end(never);
    expect(attempts).toBe(2);
  });

  test("a budget keeps its knowledge of the limits from one reply to the next", async () => {
    const opened: string[] = [];
    const scheduler = quick((key) => {
      opened.push(key);
      return createEvenPacer({ gapMs: 0 });
    });
    for (let turn = 0; turn < 2; turn++) {
      const reply = heldReply();
      const ended = scheduler.join("channel", reply.paced).end(never);
      await reply.answer(0);
      await ended;
    }
    expect(opened).toEqual(["channel"]);
  });

  test("an idle budget is dropped after a minute, or when its knowledge expires if that is later", async () => {
    vi.useFakeTimers();
    const opened: string[] = [];
    const open = (key: string): Pacer => {
      opened.push(key);
      const pacer = createEvenPacer({ gapMs: 0 });
      return key === "short" ? pacer : { ...pacer, keepUntil: () => 150_000 };
    };
    const scheduler = quick(open);
    const visit = (key: string) => scheduler.join(key, heldReply().paced).leave();
    for (const minute of [0, 59, 61, 200]) {
      await vi.advanceTimersByTimeAsync(minute * 1000 - performance.now());
      visit("short");
      visit("long");
    }
    expect(opened).toEqual(["short", "long", "short", "long"]);
  });

  test("the policy works with real timers: no rate limit, and everything is shown", async () => {
    vi.useFakeTimers();
    const counter = fixedCounter(5, 5_000);
    const clock = () => performance.now();
    const pacerFor = () => createPacer(createDiscordBudget(createDiscordShared()));
    const scheduler = quick(pacerFor);
    const refused: number[] = [];
    const run = async (tokens: number): Promise<{ arrived: number; shown: number; writes: number }> => {
      const reply = { arrived: 0, shown: 0, writes: 0 };
      const write = async (): Promise<Written> => {
        const tokensSent = reply.arrived;
        await sleep(90);
        const verdict = counter.take(clock());
        await sleep(90);
        reply.writes += 1;
        if (!verdict.ok) {
          refused.push(clock());
          return { answer: verdict, behind: true };
        }
        reply.shown = tokensSent;
        return { answer: { ok: true, budget: verdict.headers }, behind: false };
      };
      const pace = scheduler.join("channel", { write });
      for (; reply.arrived < tokens; reply.arrived++) {
        pace.text(4);
        await sleep(20);
      }
      await pace.end(never);
      return reply;
    };
    const running = Promise.all([run(300), run(500), run(200)]);
    await vi.advanceTimersByTimeAsync(120_000);
    const replies = await running;
    expect(refused).toEqual([]);
    expect(replies.map(({ arrived, shown }) => shown === arrived)).toEqual([true, true, true]);
    expect(replies.every(({ writes }) => writes > 1)).toBe(true);
  });

  test("the scheduler uses the fallback before a write for which the first budget has no calls left", async () => {
    const told: Array<boolean | undefined> = [];
    const pacer = createEvenPacer({ gapMs: 0 });
    const step: Pacer["step"] = (now) => {
      const next = pacer.step(now);
      return next.type === "send" ? { ...next, isFallback: true } : next;
    };
    const done: Pacer["done"] = (reply, written, now) => {
      told.push(written.isFallback);
      pacer.done(reply, written, now);
    };
    const { paced, answer } = heldReply();
    const seen: boolean[] = [];
    const fallback = { isActive: false, activate: () => void (fallback.isActive = true) };
    const write = () => {
      seen.push(fallback.isActive);
      return paced.write();
    };
    const pace = quick(() => ({ ...pacer, step, done })).join("workspace", { write, fallback });
    pace.text(5);
    const ended = pace.end(never);
    await answer(0);
    await answer(1);
    await ended;
    expect(seen).toEqual([true, true]);
    expect(told).toEqual([true, true]);
  });

  test("the next process learns which budget was refused, even if the fallback writes the reply from then on", async () => {
    const { paced, answer } = heldReply();
    const fallback = { isActive: false, activate: () => void (fallback.isActive = true) };
    const write = () => {
      fallback.activate();
      return paced.write();
    };
    const scheduler = createScheduler({ now: () => performance.now() });
    const pace = scheduler.join({ key: "T", createPacer: createSlackPacer }, { write, room: "C", fallback });
    pace.text(5);
    await answer(0, { answer: { ok: false, retryAfterMs: 40_000 }, behind: true });
    const isRefused = () => scheduler.callsOf("T").some(({ refusedForMs }) => refusedForMs !== undefined);
    await eventually(isRefused).toBe(true);
    pace.leave();
    const next = createSlackPacer();
    next.recall?.(scheduler.callsOf("T"));
    const now = performance.now();
    next.text(next.join({ room: "D" }), 5, now);
    expect(next.step(now + 200)).toMatchObject({ type: "send", kind: "post", isFallback: true });
  });

  test("the scheduler tells the pacer how many characters fit in a reply", () => {
    const rooms: Array<string | undefined> = [];
    const pacer = createEvenPacer({ gapMs: 0 });
    const join: Pacer["join"] = (options) => {
      rooms.push(options?.room);
      return pacer.join(options);
    };
    const { paced } = heldReply();
    quick(() => ({ ...pacer, join })).join("workspace", { ...paced, room: "general" });
    expect(rooms).toEqual(["general"]);
  });
});
