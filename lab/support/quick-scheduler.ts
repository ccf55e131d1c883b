import { createEvenPacer } from "../../src/pacing/even.ts";
import { createScheduler, type Scheduler } from "../../src/pacing/scheduler.ts";
import type { Pacer } from "../../src/port/pace.ts";

/**
 * A scheduler that ignores the sinks' limits. Replies of one budget write `gapMs` apart. With a `speed`, the pauses
 * before retries are shorter by this factor.
 */
export function createQuickScheduler(gapMs = 0, speed = 1): Scheduler {
  const scheduler = createScheduler({ now: () => performance.now() });
  const createPacer = () => accelerate(createEvenPacer({ gapMs: gapMs * speed }), speed);
  return { ...scheduler, join: ({ key }, paced) => scheduler.join({ key, createPacer }, paced) };
}

/** Time passes faster for this pacer. */
function accelerate(pacer: Pacer, speed: number): Pacer {
  return {
    ...pacer,
    text: (number, units, now) => pacer.text(number, units, now * speed),
    step(now) {
      const step = pacer.step(now * speed);
      return step.type === "wait" ? { ...step, until: step.until / speed } : step;
    },
    done: (number, written, now) => pacer.done(number, written, now * speed),
    keepUntil: () => pacer.keepUntil() / speed,
  };
}
