import type { Arrivals } from "./scenarios.ts";

/** When the reader saw the first `tokens` tokens of a reply, in milliseconds. */
export interface Showing {
  at: number;
  tokens: number;
}

export interface Outcome {
  arrivals: Arrivals;
  showings: Showing[];
  calls: number;
  refused: number;
}

/** Figures of a run for the tables. Times are in seconds; `calls` and `refused` are per reply. */
export interface Figures {
  mean: number;
  p95: number;
  final: number;
  /** The longest final lag of any reply. */
  worstFinal: number;
  freeze: number;
  calls: number;
  refused: number;
  /** Number of tokens that readers never saw. */
  lost: number;
}

/** Calculates a run's figures. The lag of each token has the same weight, however long its reply is. */
export function toFigures(outcomes: readonly Outcome[]): Figures {
  const lags: number[] = [];
  const finals: number[] = [];
  let freeze = 0;
  let lost = 0;
  for (const outcome of outcomes) {
    const seen = toSeen(outcome);
    lost += seen.filter((at) => at === Infinity).length;
    for (const [index, at] of outcome.arrivals.entries()) lags.push(((seen[index] ?? Infinity) - at) / 1_000);
    finals.push(((seen.at(-1) ?? Infinity) - (outcome.arrivals.at(-1) ?? 0)) / 1_000);
    freeze = Math.max(freeze, toFreezeMs(outcome) / 1_000);
  }
  lags.sort((a, b) => a - b);
  return {
    mean: lags.reduce((sum, lag) => sum + lag, 0) / lags.length,
    p95: lags[Math.floor(0.95 * lags.length)] ?? Number.NaN,
    final: finals.reduce((sum, lag) => sum + lag, 0) / outcomes.length,
    worstFinal: Math.max(...finals),
    freeze,
    calls: outcomes.reduce((sum, { calls }) => sum + calls, 0) / outcomes.length,
    refused: outcomes.reduce((sum, { refused }) => sum + refused, 0) / outcomes.length,
    lost,
  };
}

export function toMean(runs: readonly Figures[]): Figures {
  const mean = (key: keyof Figures) => runs.reduce((sum, run) => sum + run[key], 0) / runs.length;
  return {
    mean: mean("mean"),
    p95: mean("p95"),
    final: mean("final"),
    worstFinal: Math.max(...runs.map(({ worstFinal }) => worstFinal)),
    freeze: mean("freeze"),
    calls: mean("calls"),
    refused: mean("refused"),
    lost: mean("lost"),
  };
}

function toSeen({ arrivals, showings }: Outcome): number[] {
  const seen = arrivals.map(() => Infinity);
  let shown = 0;
  for (const { at, tokens } of showings) for (; shown < tokens; shown++) seen[shown] = at;
  return seen;
}

/** Returns the longest time that unseen text waited without a visible change. */
function toFreezeMs({ arrivals, showings }: Outcome): number {
  let longest = 0;
  let shown = 0;
  let changed = -Infinity;
  for (const { at, tokens } of showings) {
    if (tokens <= shown) continue;
    longest = Math.max(longest, at - Math.max(changed, arrivals[shown] ?? at));
    shown = tokens;
    changed = at;
  }
  return longest;
}
