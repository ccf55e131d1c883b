import type { Answer } from "./call.ts";

/** One limit of a platform, kept by counting the own calls. */
export interface Limit {
  /** Calls that could start at that moment. */
  credit(at: number): number;
  /** The first moment from `from` on with that many credits; Infinity if that never comes or depends on an answer. */
  creditAt(needs: number, from: number): number;
  sent(now: number): void;
  done(answer: Answer, now: number): void;
  /** Until when its calls and refusals matter. */
  keepUntil(): number;
}
