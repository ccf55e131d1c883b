import { createEvenPacer } from "../../src/pacing/even.ts";
import { createScheduler, type Scheduler } from "../../src/pacing/scheduler.ts";

/** A scheduler that ignores the sinks' limits. Replies of one budget write `gapMs` apart. */
export function createQuickScheduler(gapMs = 0): Scheduler {
  const scheduler = createScheduler({ now: () => performance.now() });
  return {
    ...scheduler,
    join: ({ key }, paced) => scheduler.join({ key, createPacer: () => createEvenPacer({ gapMs }) }, paced),
  };
}
