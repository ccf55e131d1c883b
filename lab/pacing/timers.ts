import type { CallKind } from "../../src/port/pace.ts";
import { createEventQueue } from "./events.ts";
import type { Outcome } from "./measure.ts";
import type { Platform, PlatformCounter } from "./platform.ts";
import type { Random } from "./random.ts";
import type { Arrivals } from "./scenarios.ts";

export interface TimerOptions {
  /** Time between the end of an edit and the next edit. */
  intervalMs: number;
  /**
   * If true, the bot first posts a placeholder, which starts the timer. Otherwise the first text starts the first call.
   */
  hasPlaceholder: boolean;
  platform: Platform;
  replies: readonly Arrivals[];
  random: Random;
  roundTrip(): number;
  room?: string;
  /** If true, the library waits for the counter, as Discord's does. Otherwise it retries a refused call. */
  isQueued: boolean;
}

interface Run extends Outcome {
  room: string;
  arrived: number;
  ended: boolean;
  busy: boolean;
  posted: boolean;
  shown: number;
  /** The earliest start of the next edit. */
  notBefore: number;
}

type Event =
  | { type: "token" | "end" | "tick"; run: Run }
  | { type: "arrive"; run: Run; kind: CallKind; tokens: number; trip: number }
  | { type: "answer"; run: Run };

/**
 * Simulates other bots, which have one timer per message and no budget. A call contains the text from the moment when
 * the library got the call, even if the platform accepts the call much later.
 */
export function simulateTimers(options: TimerOptions): Outcome[] {
  const { intervalMs, hasPlaceholder, platform, replies, random, roundTrip, isQueued } = options;
  const events = createEventQueue<Event>();
  /** Slack's client pauses all its calls after a refusal. */
  let pausedUntil = -Infinity;
  let now = 0;

  function start(run: Run, kind: CallKind): void {
    run.busy = true;
    run.posted = true;
    const trip = roundTrip();
    events.add(Math.max(now, pausedUntil) + trip / 2, { type: "arrive", run, kind, tokens: run.arrived, trip });
  }

  function arrive({ run, kind, tokens, trip }: Extract<Event, { type: "arrive" }>): void {
    const counter: PlatformCounter = platform(kind, run.room, false);
    const verdict = counter.take(now);
    if (verdict.ok) {
      run.calls += 1;
      run.shown = Math.max(run.shown, tokens);
      run.showings.push({ at: now, tokens });
      events.add(now + trip / 2, { type: "answer", run });
      return;
    }
    if (!isQueued) {
      run.calls += 1;
      run.refused += 1;
      pausedUntil = Math.max(pausedUntil, now + trip / 2 + verdict.retryAfterMs);
    }
    const again = isQueued ? now + verdict.retryAfterMs + 50 : pausedUntil + roundTrip() / 2;
    events.add(again, { type: "arrive", run, kind, tokens, trip });
  }

  function consider(run: Run): void {
    if (run.busy || run.arrived === 0) return;
    if (!run.posted) return start(run, "post");
    if (run.arrived === run.shown) return;
    if (run.ended || now >= run.notBefore) return start(run, "edit");
    if (!hasPlaceholder) events.add(run.notBefore, { type: "tick", run });
  }

  function handle(event: Event): void {
    const { run } = event;
    if (event.type === "arrive") return arrive(event);
    if (event.type === "token") run.arrived += 1;
    if (event.type === "end") run.ended = true;
    if (event.type === "answer") {
      run.busy = false;
      run.notBefore = now + intervalMs;
    }
    consider(run);
    if (hasPlaceholder && !run.busy && !run.ended && (event.type === "tick" || event.type === "answer")) {
      run.notBefore = now + intervalMs;
      events.add(run.notBefore, { type: "tick", run });
    }
  }

  const runs = replies.map((arrivals, index): Run => {
    const first = arrivals[0] ?? 0;
    const run: Run = {
      arrivals,
      room: options.room ?? `room ${index}`,
      showings: [],
      calls: hasPlaceholder ? 1 : 0,
      refused: 0,
      arrived: 0,
      ended: false,
      busy: false,
      posted: hasPlaceholder,
      shown: 0,
      notBefore: hasPlaceholder ? first + random.next() * (intervalMs + roundTrip()) : first,
    };
    for (const at of arrivals) events.add(at, { type: "token", run });
    events.add(arrivals.at(-1) ?? 0, { type: "end", run });
    if (hasPlaceholder) {
      platform("post", run.room, false).take(Math.max(0, run.notBefore - intervalMs));
      events.add(run.notBefore, { type: "tick", run });
    }
    return run;
  });
  for (let entry = events.next(); entry !== undefined; entry = events.next()) {
    now = entry.at;
    handle(entry.event);
  }
  return runs;
}
