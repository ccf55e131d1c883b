import type { Limit } from "./limit.ts";

/**
 * A limit of one call per `pause` seconds. The pause begins with the answer: whatever the round trips, the platform
 * then sees the calls at least that far apart.
 */
export function createRoomTurns(pause: number): Limit {
  let inFlight = 0;
  let freeAt = -Infinity;
  return {
    credit: (at) => (inFlight === 0 && at >= freeAt ? 1 : 0),
    creditAt: (needs, from) => (inFlight > 0 || needs > 1 ? Infinity : Math.max(from, freeAt)),
    sent() {
      inFlight += 1;
    },
    done(answer, now) {
      inFlight -= 1;
      const wait = answer.ok ? pause : Math.max(pause, answer.retryAfter ?? 0);
      freeAt = Math.max(freeAt, now + wait);
    },
    keepUntil: () => (inFlight > 0 ? Infinity : freeAt),
  };
}
