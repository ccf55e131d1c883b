import type { Demand, Growth } from "./budget.ts";

/** Characters that a reply is expected to have in the end, and least that one beyond them still grows: this and half of what it has. */
const USUAL = 2600;
const USUAL_REST = 400;
/** The same of replies that grow side by side for longer than `LASTING` seconds, as those of 400 tokens seldom do. */
const LONG = 6000;
const LONG_REST = 1000;
const LASTING = 7;
/** A reply older than this, alone or not, may well outlast the bank, seconds. */
const OUTLASTING = 10;
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
const RATE_SPAN = 75;
/** A rate is taken over no less time than this, seconds: two starts close together are no rate. */
const MIN_RATE_SPAN = 30;
/** Earlier replies that took this share of the limit's calls show that their rate matters. */
const LOADED = 0.1;
/** New replies per minute from which on a workspace counts as busy. */
const BUSY = 15;
/** A loaded workspace plans no faster and no slower than these shares of the spacing at which its calls return. */
const LEAST_SPACING = 0.9;
const MOST_SPACING = 1.5;
/** The longest planned gap of one reply, seconds. */
const MAX_GAP = 10;

export interface BankState {
  /** Calls that one window allows. */
  calls: number;
  /** The window in seconds as the platform says it, and with the margin for which own calls count. */
  window: number;
  counted: number;
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
 * the optimum once the demand is known; what is guessed here is the demand. `docs/pacing.md` derives it.
 */
export function planGap(demand: Demand, bank: BankState): number {
  const { now, live, active: K } = demand;
  const rates = live.map(({ rate }) => clamp(rate, MIN_RATE, MAX_RATE));
  const mean = rates.length === 0 ? USUAL_RATE : rates.reduce((sum, rate) => sum + rate, 0) / rates.length;
  const lasting = live.filter(({ firstText }) => firstText < now - LASTING).length > 1;
  const residuals = live.map((reply) => toResidual(reply, K, lasting));
  const { load, lam } = toLoad(demand, bank);
  // Many short replies are likelier than many long ones, until they last or the workspace is busy.
  const kq = lasting ? 0 : 0.5 * Math.max(0, 1 - (60 * lam) / BUSY);

  const asked = (h: number) => {
    const present = residuals.reduce((sum, rest) => sum + Math.min(rest, h), 0);
    const coming = BELIEF * lam * h * Math.min(600 / mean, h / 2);
    return (live.length === 0 ? Math.min(USUAL / USUAL_RATE, h) : present) + coming;
  };
  const there = (h: number) => bank.calls - bank.countAt(now + h) - bank.reserve - BELIEF * lam * h;
  const g = Math.max(...HORIZONS.map((h) => asked(h) / K ** kq / Math.max(1, there(h))));

  // What lasts is written near the rate at which calls return: one quiet second does not empty the bank.
  const outlasts = live.some(({ firstText }) => firstText < now - OUTLASTING);
  const alone = outlasts ? (LEAST_SPACING * bank.window) / bank.calls : 0;
  const G = Math.max(clamp(g, bank.minGap, MAX_GAP) / K, alone);
  if (lam === 0) return G;
  const base = bank.window / Math.max(bank.calls / 3, bank.calls - bank.window * lam);
  const least = (LEAST_SPACING * load * base) / K ** kq;
  return Math.max(bank.minGap / K, alone, least, Math.min(G, MOST_SPACING * base));
}

/** Finals of replies still to begin that no returning call will be there for: what edits leave for them. */
export function countComingFinals(demand: Demand, bank: BankState): number {
  const { now } = demand;
  const { lam } = toLoad(demand, bank);
  const spent = bank.countAt(now);
  return Math.max(0, ...HORIZONS.map((h) => lam * h - (spent - bank.countAt(now + h))));
}

/** Expected seconds that a reply still grows. One alone counts twice: only the long ones meet the end of the credit. */
function toResidual({ total, rate }: Growth, K: number, lasting: boolean): number {
  const pace = clamp(rate, MIN_RATE, MAX_RATE);
  if (lasting) return Math.max(LONG - total, LONG_REST) / pace;
  return ((1 + 1 / K) * Math.max(USUAL - total, USUAL_REST + 0.5 * total)) / pace;
}

/**
 * How loaded the workspace is by earlier replies, 0 to 1, and the new replies per second that it makes likely. What
 * earlier replies took of the calls is the evidence, squared: a single short answer shows next to nothing.
 */
function toLoad({ now, live, starts }: Demand, bank: BankState): { load: number; lam: number } {
  const old = live.filter(({ firstText }) => firstText < now - BURST_SPAN);
  // What replies that still grow have taken is in their own demand already, and their starts are no new replies.
  const own = old.reduce((sum, { edits }) => sum + edits, 0);
  const before = bank.countAt(now) - bank.countAt(now + bank.counted - BURST_SPAN);
  const load = clamp((before - own) / (LOADED * bank.calls), 0, 1) ** 2;
  const others = starts.filter((at) => !live.some(({ firstText }) => firstText === at));
  return { load, lam: load * toStartRate(others, now) };
}

/** New replies per second since the first start that still says something; 0 without one that is no burst. */
function toStartRate(starts: readonly number[], now: number): number {
  const old = starts.filter((at) => at < now - BURST_SPAN && at > now - RATE_SPAN);
  const [first] = old;
  return first === undefined ? 0 : old.length / (Math.max(now - first, MIN_RATE_SPAN) - BURST_SPAN);
}

function clamp(value: number, min: number, max: number): number {
  return Math.min(Math.max(value, min), max);
}
