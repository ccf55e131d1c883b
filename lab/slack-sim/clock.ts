/** Slack's time. It is real time unless a test moves it. It does not affect how long Slack waits for the app. */
export interface Clock {
  /** Unix milliseconds. */
  now(): number;
  /** Calls `run` once after the delay, or when `advance` moves past it. The returned function cancels the call. */
  after(delayMs: number, run: () => void): () => void;
  /** Moves the time forward. Pending calls run in order, each at its own time. */
  advance(ms: number): void;
  close(): void;
}

interface Alarm {
  atMs: number;
  run: () => void;
  timer: NodeJS.Timeout | undefined;
}

/** The longest delay that `setTimeout` accepts. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** With `isFrozen`, only `advance` moves the time. */
export function createClock({ startMs = Date.now(), isFrozen = false } = {}): Clock {
  const alarms = new Set<Alarm>();
  const bootMs = performance.now();
  let movedMs = 0;

  function now(): number {
    return startMs + movedMs + (isFrozen ? 0 : performance.now() - bootMs);
  }

  function arm(alarm: Alarm): void {
    if (isFrozen) return;
    clearTimeout(alarm.timer);
    // Timers can fire early, but an alarm must never see a time before its own.
    alarm.timer = setTimeout(
      () => (now() >= alarm.atMs ? ring(alarm) : arm(alarm)),
      Math.min(MAX_TIMER_MS, Math.max(0, Math.ceil(alarm.atMs - now()))),
    );
    alarm.timer.unref();
  }

  function ring(alarm: Alarm): void {
    clearTimeout(alarm.timer);
    if (alarms.delete(alarm)) alarm.run();
  }

  return {
    now,
    after(delayMs, run) {
      const alarm: Alarm = { atMs: now() + delayMs, run, timer: undefined };
      alarms.add(alarm);
      arm(alarm);
      return () => {
        clearTimeout(alarm.timer);
        alarms.delete(alarm);
      };
    },
    advance(ms) {
      const targetMs = now() + ms;
      for (let next = earliest(alarms); next !== undefined && next.atMs <= targetMs; next = earliest(alarms)) {
        movedMs += Math.max(0, next.atMs - now());
        ring(next);
      }
      movedMs += Math.max(0, targetMs - now());
      for (const alarm of alarms) arm(alarm);
    },
    close() {
      for (const { timer } of alarms) clearTimeout(timer);
      alarms.clear();
    },
  };
}

function earliest(alarms: ReadonlySet<Alarm>): Alarm | undefined {
  let found: Alarm | undefined;
  for (const alarm of alarms) if (found === undefined || alarm.atMs < found.atMs) found = alarm;
  return found;
}
