import type { CallKind } from "./call.ts";

/** One call of ours against a counter. */
export interface OwnCall {
  at: number;
  /** Infinity until it is answered. */
  answeredAt: number;
  kind: CallKind;
}

/** The calls made against one counter, oldest first. */
export interface OwnCalls {
  add(call: OwnCall): void;
  answered(at: number, kind: CallKind, now: number): void;
  /** Takes back a call that turned out to count elsewhere. */
  remove(at: number, kind: CallKind): OwnCall | undefined;
  /** Forgets what neither a window of this length nor an answer can refer to any more. */
  prune(now: number, window: number): void;
  unanswered(): number;
  /** Other calls that were in flight while an answered one was. */
  overlapping(at: number, answeredAt: number): number;
  /** Calls from that moment on, and those that were in flight then. */
  since(at: number): number;
  last(): number;
  all(): readonly OwnCall[];
}

/** Seconds for which answered calls are remembered beyond two windows. */
const KEPT = 10;

export function createOwnCalls(): OwnCalls {
  let calls: OwnCall[] = [];
  return {
    add(call) {
      calls.push({ ...call });
      calls.sort((a, b) => a.at - b.at);
    },
    answered(at, kind, now) {
      const call = calls.find((one) => one.at === at && one.kind === kind && one.answeredAt === Infinity);
      if (call !== undefined) call.answeredAt = now;
    },
    remove(at, kind) {
      const index = calls.findIndex((one) => one.at === at && one.kind === kind);
      return index === -1 ? undefined : calls.splice(index, 1)[0];
    },
    prune(now, window) {
      calls = calls.filter((call) => call.answeredAt > now - 2 * window - KEPT);
    },
    unanswered: () => calls.filter((call) => call.answeredAt === Infinity).length,
    overlapping: (at, answeredAt) =>
      Math.max(0, calls.filter((call) => call.at <= answeredAt && call.answeredAt > at).length - 1),
    since: (at) => calls.filter((call) => call.at >= at || call.answeredAt > at).length,
    last: () => calls.at(-1)?.at ?? -Infinity,
    all: () => calls,
  };
}
