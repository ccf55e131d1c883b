import { LOOK_MS } from "../../src/pacing/scheduler.ts";
import type { BudgetHeaders, CallKind, CallResult, Pacer } from "../../src/port/pace.ts";
import { createEventQueue } from "./events.ts";
import type { Outcome } from "./measure.ts";
import type { Platform } from "./platform.ts";
import type { Random } from "./random.ts";
import type { Arrivals } from "./scenarios.ts";
import { TOKEN_UNITS } from "./scenarios.ts";

export interface SimulationOptions {
  pacer: Pacer;
  platform: Platform;
  replies: readonly Arrivals[];
  random: Random;
  roundTrip(): number;
  /** The room that all replies share. By default, each reply has its own room. */
  room?: string;
  /** Share of calls that fail with a server error. Half of these still count against the limit. */
  errorShare?: number;
  /** Changes the response headers of the call with this number. */
  headersOf?(headers: BudgetHeaders, call: number): BudgetHeaders | undefined;
  /** True for a native stream, which needs a final call even without new text. */
  needsStop?: boolean;
}

/** Numbers of errors that must not happen. */
export interface Faults {
  /** Calls that started during another call of the same reply. */
  overlaps: number;
  /** Times that older text replaced newer text. */
  regressions: number;
  /** Calls that started during a wait that the platform had requested. */
  impatience: number;
  /** Replies that ended without all of their text. */
  unfinished: number;
}

interface Run extends Outcome {
  number: number;
  room: string;
  arrived: number;
  /** Number of tokens that had arrived at the start of the reply's last call. */
  carried: number;
  ended: boolean;
  busy: boolean;
  shown: number;
  finished: boolean;
}

interface CallMade {
  run: Run;
  kind: CallKind;
  isFallback: boolean;
  tokens: number;
  afterEnd: boolean;
  answeredAt: number;
}

type Event =
  | { type: "token"; run: Run }
  | { type: "end"; run: Run }
  | { type: "arrive"; call: CallMade }
  | { type: "answer"; call: CallMade; answer: CallResult }
  | { type: "wake" };

/** Runs replies through one pacer against a fake platform in virtual time. */
export function simulate(options: SimulationOptions): { outcomes: Outcome[]; faults: Faults; endedAt: number } {
  const { pacer, platform, replies, random, roundTrip } = options;
  const events = createEventQueue<Event>();
  const faults: Faults = { overlaps: 0, regressions: 0, impatience: 0, unfinished: 0 };
  const blocked = new Map<object, number>();
  const runs = replies.map((arrivals, index): Run => {
    const room = options.room ?? `room ${index}`;
    return {
      arrivals,
      room,
      showings: [],
      calls: 0,
      refused: 0,
      number: 0,
      arrived: 0,
      carried: 0,
      ended: false,
      busy: false,
      shown: 0,
      finished: false,
    };
  });
  const byNumber = new Map<number, Run>();
  let now = 0;
  let calls = 0;
  let askedAt = -Infinity;
  let wakeAt = Infinity;

  function wakeBy(at: number): void {
    if (wakeAt <= at) return;
    wakeAt = Math.max(at, now + 1e-3);
    events.add(wakeAt, { type: "wake" });
  }

  function pump(): void {
    askedAt = now;
    for (;;) {
      const step = pacer.step(now);
      if (step.type === "send") {
        start(step.reply, step.kind, step.isFallback === true);
        continue;
      }
      wakeAt = Infinity;
      if (step.type === "wait") wakeBy(step.until);
      return;
    }
  }

  function start(number: number, kind: CallKind, isFallback: boolean): void {
    const run = byNumber.get(number);
    if (run === undefined) throw new Error("The pacer sent a reply that had already left.");
    if (run.busy) faults.overlaps += 1;
    if (now < (blocked.get(platform(kind, run.room, isFallback)) ?? -Infinity)) faults.impatience += 1;
    run.busy = true;
    run.calls += 1;
    run.carried = run.arrived;
    const trip = roundTrip();
    const call: CallMade = { run, kind, isFallback, tokens: run.arrived, afterEnd: run.ended, answeredAt: now + trip };
    events.add(now + trip / 2, { type: "arrive", call });
  }

  function arrive(call: CallMade): void {
    const { run, kind, isFallback } = call;
    calls += 1;
    const isBroken = random.next() < (options.errorShare ?? 0);
    const counter = platform(kind, run.room, isFallback);
    // Half of the failed calls never reach the counter. No failed call shows text.
    const verdict = isBroken && random.next() < 0.5 ? undefined : counter.take(now);
    let answer: CallResult = { ok: false };
    if (verdict !== undefined && !verdict.ok) {
      answer = { ok: false, retryAfterMs: verdict.retryAfterMs };
      run.refused += 1;
    } else if (verdict !== undefined && !isBroken) {
      const headers = options.headersOf === undefined ? verdict.headers : options.headersOf(verdict.headers, calls);
      answer = headers === undefined ? { ok: true } : { ok: true, budget: headers };
      if (call.tokens < run.shown) faults.regressions += 1;
      run.shown = call.tokens;
      run.showings.push({ at: now, tokens: call.tokens });
    }
    events.add(call.answeredAt, { type: "answer", call, answer });
  }

  function finish(call: CallMade, answer: CallResult): void {
    const { run, kind, isFallback } = call;
    run.busy = false;
    if (!answer.ok && answer.retryAfterMs !== undefined) {
      blocked.set(platform(kind, run.room, isFallback), now + answer.retryAfterMs);
    }
    const isStopped = options.needsStop !== true || isFallback || kind === "final";
    const isDone = answer.ok && call.afterEnd && isStopped;
    pacer.done(run.number, { answer, behind: call.afterEnd && !isDone, isFallback }, now);
    if (!isDone) return;
    pacer.leave(run.number);
    run.finished = true;
  }

  function handle(event: Event): void {
    if (event.type === "token") {
      const { run } = event;
      if (run.arrived === 0) {
        run.number = pacer.join({ room: run.room });
        byNumber.set(run.number, run);
      }
      run.arrived += 1;
      pacer.text(run.number, TOKEN_UNITS, now);
    }
    if (event.type === "end") {
      event.run.ended = true;
      pacer.end(event.run.number);
    }
    if (event.type === "arrive") arrive(event.call);
    if (event.type === "answer") finish(event.call, event.answer);
  }

  for (const run of runs) {
    for (const at of run.arrivals) events.add(at, { type: "token", run });
    events.add(run.arrivals.at(-1) ?? 0, { type: "end", run });
  }
  for (let entry = events.next(); entry !== undefined; entry = events.next()) {
    now = entry.at;
    if (now > 36_000_000) throw new Error("The replies did not finish within ten hours.");
    const { type } = entry.event;
    // Skip a wake-up that was rescheduled.
    if (type === "wake" && now !== wakeAt) continue;
    handle(entry.event);
    // Waits for more text as long as the real scheduler does.
    const isMore = type === "token" && entry.event.run.arrived > entry.event.run.carried + 1;
    if (isMore && now < askedAt + LOOK_MS) wakeBy(now + LOOK_MS);
    else if (type !== "arrive") pump();
  }
  faults.unfinished = runs.filter((run) => !run.finished || run.shown !== run.arrivals.length).length;
  return { outcomes: runs, faults, endedAt: now };
}
