import type { Limit } from "./limit.ts";

/**
 * A limit of one call per `pause` seconds, counted where the calls arrive. Nobody here knows when that is: between the
 * start of a call and its answer, and at least half the quickest round trip before the answer. From then on the pause
 * runs, so that the platform sees the calls at least that far apart.
 */
export function createRoomTurns(pause: number): Limit {
  let inFlight = 0;
  let freeAt = -Infinity;
  let sentAt = -Infinity;
  /** The quickest round trip so far, seconds. */
  let quickest = Infinity;
  return {
    credit: (at) => (inFlight === 0 && at >= freeAt ? 1 : 0),
    creditAt: (needs, from) => (inFlight > 0 || needs > 1 ? Infinity : Math.max(from, freeAt)),
    sent(now) {
      inFlight += 1;
      sentAt = now;
    },
    done(answer, now) {
      inFlight -= 1;
      quickest = Math.min(quickest, now - sentAt);
      const wait = answer.ok ? pause - quickest / 2 : Math.max(pause, answer.retryAfter ?? 0);
      freeAt = Math.max(freeAt, now + wait);
    },
    keepUntil: () => (inFlight > 0 ? Infinity : freeAt),
  };
}
