import { openDiscordWorld } from "./fault-loop/discord-world.ts";
import { planRound, type Round } from "./fault-loop/plan.ts";
import { type Finding, type Outside, runRound } from "./fault-loop/round.ts";
import { openShop } from "./fault-loop/shop.ts";
import { openSlackWorld } from "./fault-loop/slack-world.ts";
import { openUpstream } from "./fault-loop/upstream.ts";
import type { Fault } from "./fault-loop/verdict.ts";

export type LoopPlatform = "discord" | "slack";

export interface FaultLoopOptions {
  platform: LoopPlatform;
  /** Questions at least, over all rounds, that something may happen to. */
  turns: number;
  /** Of the first round; each further one has the next. */
  seed: number;
  /** Rounds at the same time, each on a platform of its own. */
  sideBySide: number;
  onRound?(finding: Finding): void;
}

export interface LoopResult {
  rounds: number;
  turns: number;
  /** Questions in all, with those that only begin and end a round. */
  asked: number;
  kills: number;
  /** Calls of a tool that acts. */
  acts: number;
  counts: Record<Fault, number>;
  /** Rounds with something to complain of, by seed. */
  failed: Finding[];
}

/**
 * Asks questions on a simulated platform while the platform, the upstream, the people and the process do their worst,
 * and looks at what is left. A round depends on its seed alone, so that one that failed can be run again by itself.
 */
export async function runFaultLoop(options: FaultLoopOptions): Promise<LoopResult> {
  const { platform, turns, seed, sideBySide, onRound } = options;
  const [upstream, shop] = await Promise.all([openUpstream(), openShop()]);
  const result: LoopResult = {
    rounds: 0,
    turns: 0,
    asked: 0,
    kills: 0,
    acts: 0,
    counts: { lost: 0, doubled: 0, stuck: 0, wrong: 0, "taken back": 0, "acted twice": 0 },
    failed: [],
  };
  let next = seed;
  let planned = 0;

  async function work(): Promise<void> {
    while (planned < turns) {
      const round = planRound(next++);
      planned += round.questions.length;
      const finding = await runOne(platform, round, { upstream, shop });
      onRound?.(finding);
      add(result, finding);
    }
  }
  try {
    await Promise.all(Array.from({ length: sideBySide }, work));
  } finally {
    await Promise.all([upstream.close(), shop.close()]);
  }
  result.acts = shop.marks.length;
  result.failed.sort((a, b) => a.seed - b.seed);
  return result;
}

async function runOne(platform: LoopPlatform, round: Round, outside: Outside): Promise<Finding> {
  return runRound(round, await (platform === "slack" ? openSlackWorld : openDiscordWorld)(round), outside);
}

function add(result: LoopResult, finding: Finding): void {
  result.rounds += 1;
  result.turns += finding.turns;
  result.asked += finding.asked;
  result.kills += finding.kills;
  for (const { fault } of finding.complaints) result.counts[fault] += 1;
  if (finding.complaints.length > 0) result.failed.push(finding);
}
