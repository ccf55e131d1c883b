import type { Demand, Growth } from "./budget.ts";

/** A reply beyond this length (characters) counts as a long one, whose end is not in sight. */
const LONG = 2600;
/** What a long reply is expected to grow still: this many characters and half of what it has. */
const LONG_REST = 400;
/** Characters per second of a reply of which nothing is known. */
const USUAL_RATE = 240;
/** Bounds within which a reply's rate is believed, characters per second. */
const MIN_RATE = 40;
const MAX_RATE = 600;
/** Moments ahead for which demand and credit are compared, seconds. The tightest decides. */
const HORIZONS = [2, 5, 10, 15, 20, 30, 40, 50, 60.5] as const;
/** Of the replies that the rate of starts foretells, this share is counted on. */
const BELIEF = 0.6;
/** Starts younger than this are a burst, not yet a rate; older ones than `RATE_SPAN` say nothing about now, seconds. */
const BURST_SPAN = 7.5;
const RATE_SPAN = 120;
/** New replies per minute from which on a workspace counts as busy. */
const BUSY = 15;
/** The longest planned gap of one reply, seconds. */
const MAX_GAP = 10;

export interface BankState {
  /** Calls that one window allows, and the window in seconds as the platform says it. */
  calls: number;
  window: number;
  /** Own calls that still count at a moment to come. */
  countAt(at: number): number;
  /** Calls kept for finals. */
  reserve: number;
  /** The least planned gap of one reply, seconds. */
  minGap: number;
}

/**
 * Plans the gap between calls for a limit whose credits come back one by one: what is asked for until some moment over
 * what there will be until then, for the tightest of several moments. Spending evenly per second of growing reply is
 * the optimum once the demand is known; what is guessed here is the demand.
 */
export function planGap(demand: Demand, bank: BankState): number {
  const { now, live, starts, active: K } = demand;
  const rates = live.map(({ rate }) => clamp(rate, MIN_RATE, MAX_RATE));
  const mean = rates.length === 0 ? USUAL_RATE : rates.reduce((sum, rate) => sum + rate, 0) / rates.length;
  const residuals = live.map((reply) => toResidual(reply, K));
  const { old, lam } = toStartRate(starts, now);
  const kq = 0.5 * Math.max(0, 1 - (60 * lam) / BUSY);

  const asked = (h: number) => {
    const present = residuals.reduce((sum, rest) => sum + Math.min(rest, h), 0);
    const coming = BELIEF * lam * h * Math.min(600 / mean, h / 2);
    return (live.length === 0 ? Math.min(LONG / USUAL_RATE, h) : present) + coming;
  };
  const there = (h: number) => bank.calls - bank.countAt(now + h) - bank.reserve - BELIEF * lam * h;
  const g = Math.max(...HORIZONS.map((h) => asked(h) / K ** kq / Math.max(1, there(h))));

  const G = clamp(g, bank.minGap, MAX_GAP) / K;
  if (old === 0) return G;
  // In a steady workspace the calls keep near the rate at which they return: one quiet second does not empty the bank.
  const base = bank.window / Math.max(bank.calls / 3, bank.calls - bank.window * lam);
  return Math.max(bank.minGap / K, 0.75 * base, Math.min(G, 1.5 * base));
}

/** Expected seconds that a reply still grows. One alone counts twice: only the long ones meet the end of the credit. */
function toResidual({ total, rate }: Growth, K: number): number {
  return ((1 + 1 / K) * Math.max(LONG - total, LONG_REST + 0.5 * total)) / clamp(rate, MIN_RATE, MAX_RATE);
}

/** How many starts show a rate, and the rate (replies per second). */
function toStartRate(starts: readonly number[], now: number): { old: number; lam: number } {
  const old = starts.filter((at) => at < now - BURST_SPAN && at > now - RATE_SPAN).length;
  const first = starts[0];
  if (old === 0 || first === undefined) return { old: 0, lam: 0 };
  return { old, lam: old / (clamp(now - first, 30, RATE_SPAN) - BURST_SPAN) };
}

function clamp(value: number, min: number, max: number): number {
  return Math.min(Math.max(value, min), max);
}
