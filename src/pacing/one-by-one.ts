import type { Pacer } from "./pacer.ts";

/**
 * A pacer for a platform whose client makes the calls of one budget one after another: a second one begins when the
 * first was answered. Left to wait inside the client it would hold a credit, carry a time at which it was not made,
 * and hide from the budget which answer belongs to which call.
 */
export function createOneByOne(pacer: Pacer): Pacer {
  let inFlight: number | undefined;
  return {
    ...pacer,
    step(now) {
      if (inFlight !== undefined) return { type: "idle" };
      const step = pacer.step(now);
      if (step.type === "send") inFlight = step.reply;
      return step;
    },
    done(reply, written, now) {
      if (reply === inFlight) inFlight = undefined;
      pacer.done(reply, written, now);
    },
  };
}
