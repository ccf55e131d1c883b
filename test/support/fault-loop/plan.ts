import type { ThreadMode } from "../../../adapters/discord/options.ts";
import { createRandom, type Random } from "../pacing/random.ts";
import { toName } from "./answers.ts";
import type { Script } from "./upstream.ts";
import { REPEATED, type UpstreamWay } from "./upstream-faults.ts";

/** The actions of people on a question or on its answer. */
export type Doing = "edit" | "remove" | "stop" | "follow" | "remove-answer" | "retry-twice";

export interface PlannedQuestion {
  name: string;
  person: number;
  atMs: number;
  script: Script;
  doing: { what: Doing; afterMs: number } | undefined;
}

export interface PlannedTrouble {
  /** An index into the troubles of the platform, which this is a share of. */
  share: number;
  atMs: number;
  lastsMs: number;
}

/** One round of the loop: what is asked in one place, and what goes wrong meanwhile. The seed is all it depends on. */
export interface Round {
  seed: number;
  threads: ThreadMode;
  place: "channel" | "direct" | "thread";
  streams: boolean;
  questions: PlannedQuestion[];
  troubles: PlannedTrouble[];
  killsAtMs: number[];
  /** Share of the events that are delivered twice. */
  doubled: number;
}

const FATAL: readonly UpstreamWay[] = [
  "cut",
  "stall",
  "comments",
  "error",
  "unfinished",
  "garbage",
  "huge",
  "html",
  "empty",
  "rate-limited-long",
  "length",
  "filter",
];
const FINE: readonly UpstreamWay[] = ["answer", "answer", "answer", "no-done", "odd-framing", "json", "tool"];
const DOINGS: readonly Doing[] = ["edit", "remove", "stop", "stop", "follow", "follow", "remove-answer", "retry-twice"];

export function planRound(seed: number): Round {
  const random = createRandom(seed);
  const killed = random.next() < 0.25;
  return {
    seed,
    threads: random.pick(["off", "auto", "auto", "on"]),
    place: random.pick(["channel", "channel", "channel", "direct", "thread"]),
    streams: random.next() < 0.6,
    questions: Array.from({ length: random.pick([1, 1, 2, 3, 4]) }, (_, index) => planQuestion(random, seed, index)),
    troubles: Array.from({ length: random.pick([0, 1, 1, 2, 3]) }, () => ({
      share: random.next(),
      atMs: random.between(0, 1_800),
      lastsMs: random.between(200, 1_500),
    })),
    killsAtMs: killed ? Array.from({ length: random.pick([1, 1, 2]) }, () => random.between(50, 2_500)) : [],
    doubled: random.pick([0, 0, 0.3]),
  };
}

function planQuestion(random: Random, seed: number, index: number): PlannedQuestion {
  const isDone = random.next() < 0.35;
  return {
    name: toName(seed, index),
    person: random.pick([0, 0, 1]),
    atMs: random.between(0, 900),
    script: { ways: planWays(random), paceMs: random.pick([2, 8, 25, 60]) },
    doing: isDone ? { what: random.pick(DOINGS), afterMs: random.between(0, 1_500) } : undefined,
  };
}

/** Failures that pass, perhaps; then one that does not and an answer to whoever asks again, or the answer at once. */
function planWays(random: Random): UpstreamWay[] {
  const passing = random.next() < 0.2 ? [random.pick([...REPEATED])] : [];
  const ending = random.next() < 0.25 ? [random.pick(FATAL)] : [];
  return [...passing, ...ending, random.pick(FINE)];
}
