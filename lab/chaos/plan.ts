import type { ThreadMode } from "../../adapters/discord/options.ts";
import { createRandom, type Random } from "../pacing/random.ts";
import { toName } from "./answers.ts";
import type { Script } from "./upstream.ts";
import type { UpstreamWay } from "./upstream-faults.ts";

export type Platform = "slack" | "discord";

/** What a person does with a question or its answer. `follow` asks another question. */
export type Doing = "edit" | "remove" | "stop" | "retry" | "follow" | "remove-answer" | "retry-twice";

export interface PlannedQuestion {
  place: number;
  name: string;
  person: number;
  atMs: number;
  script: Script;
  doing?: { what: Doing; afterMs: number };
}

/** An image that a person requests with a command. */
export interface PlannedPicture {
  place: number;
  name: string;
  person: number;
  atMs: number;
}

/** A run of a schedule that a person made earlier. */
export type PlannedRun = PlannedPicture;

/** The values of the variable `ROLE`. */
export type Role = "all" | "ingress" | "worker";

export type PlaceKind = "channel" | "direct" | "thread";

/**
 * A fault in the processes or around them. `kill` is SIGKILL and `end` is SIGTERM, both followed by a restart. `roll`
 * sends SIGTERM to one process after another, like a deploy. `stop` is SIGSTOP and later SIGCONT. `redis-kill` kills
 * Redis and restarts it from its disk. `redis-freeze` stops Redis for a while. `redis-slow` delays the traffic between
 * Redis and one process. `redis-cut` aborts one process's connections to Redis. `platform` is one of the platform's
 * faults.
 */
export type FaultKind =
  | "kill"
  | "end"
  | "roll"
  | "stop"
  | "redis-kill"
  | "redis-freeze"
  | "redis-slow"
  | "redis-cut"
  | "platform";

export interface PlannedFault {
  kind: FaultKind;
  atMs: number;
  lastsMs: number;
  /** Chooses the process, or the platform's fault, from a list: 0 stands for the first and almost 1 for the last. */
  share: number;
  /** Index of the affected place, for faults that hit only one. */
  place: number;
}

/**
 * Everything that happens to one run from outside. The same options give the same plan. Times are milliseconds from the
 * start of the run.
 */
export interface Plan {
  seed: number;
  platform: Platform;
  /** True for one process on SQLite; false for processes that share a Redis. */
  isAlone: boolean;
  streams: boolean;
  threads: ThreadMode;
  roles: Role[];
  /** How far each process's clock is ahead, in milliseconds. */
  aheadMs: number[];
  places: PlaceKind[];
  questions: PlannedQuestion[];
  pictures: PlannedPicture[];
  /** Empty unless processes share a Redis. */
  runs: PlannedRun[];
  faults: PlannedFault[];
}

export interface PlanOptions {
  seed: number;
  turns: number;
  platform: Platform;
  processes: number;
  /** If true, some processes receive events and the others answer. By default, each process does both. */
  hasRoles?: boolean;
  /** If true, plans one process without Redis. */
  isAlone?: boolean;
}

/** Questions per second in all places together. */
const PER_SECOND = 8;
/** Average number of questions per place. */
const QUESTIONS_PER_PLACE = 12;
/** Average time between two faults. */
const FAULT_MS = 2_500;
/** Time before the first fault, so that all processes know each other. */
const QUIET_MS = 1_500;
/** Longer than the service waits for a silent upstream. */
const STALL_MS = 35_000;
const AHEAD_MS = 90_000;

const DOINGS: readonly Doing[] = ["edit", "remove", "stop", "stop", "retry"];
const DOINGS_ALONE: readonly Doing[] = [...DOINGS, "follow", "follow", "remove-answer", "retry-twice"];
const PLACES: readonly PlaceKind[] = ["channel", "thread", "thread", "direct"];
/**
 * Ways in which the upstream sends nothing, or only the start of the answer. The next request for this answer uses the
 * next way in the question's list.
 */
const BAD: readonly UpstreamWay[] = [
  "500",
  "503",
  "reset",
  "rate-limited",
  "cut",
  "error",
  "unfinished",
  "garbage",
  "html",
  "empty",
  "length",
  "filter",
];
const BAD_ALONE: readonly UpstreamWay[] = [...BAD, "huge", "rate-limited-long"];
const STALLS: readonly UpstreamWay[] = ["stall", "comments"];
const THREADS: readonly ThreadMode[] = ["off", "auto", "auto", "on"];
const GOOD: readonly UpstreamWay[] = ["answer", "answer", "answer", "answer", "no-done", "odd-framing", "json", "tool"];
/** Each fault's minimum and maximum duration, and its weight. */
const FAULTS: Readonly<Record<FaultKind, readonly [minMs: number, maxMs: number, weight: number]>> = {
  kill: [100, 2_500, 4],
  end: [100, 1_500, 2],
  roll: [100, 500, 1],
  // Some of these stops end before other processes take over, and some end after it.
  stop: [1_000, 8_000, 3],
  "redis-kill": [50, 2_500, 1],
  "redis-freeze": [200, 2_500, 1],
  "redis-slow": [1_000, 4_000, 2],
  "redis-cut": [0, 0, 2],
  platform: [200, 1_500, 8],
};

/** Share of the single-process plans in which the process stays alive, so that no restart can excuse a finding. */
const ALIVE_SHARE = 0.4;
/**
 * Sets of faults with their average interval: for several processes, for one process without Redis, and for one process
 * that stays alive.
 */
const TOGETHER = { kinds: Object.keys(FAULTS) as FaultKind[], everyMs: FAULT_MS };
const ALONE: Faults = { kinds: ["kill", "end", "platform"], everyMs: FAULT_MS / 4 };
const ALIVE: Faults = { kinds: ["platform"], everyMs: FAULT_MS / 6 };

export function planRun(options: PlanOptions): Plan {
  const { seed, turns, platform, isAlone = false, hasRoles = false } = options;
  const processes = isAlone ? 1 : options.processes;
  const random = createRandom(seed);
  const lengthMs = (turns / PER_SECOND) * 1_000;
  const places = Array.from({ length: Math.max(1, Math.ceil(turns / QUESTIONS_PER_PLACE)) }, () => random.pick(PLACES));
  const questions = planQuestions(random, { seed, turns, places: places.length, lengthMs, isAlone });
  const pictures = Array.from({ length: Math.floor(turns / 25) }, (_, index) => ({
    place: Math.floor(random.between(0, places.length)),
    // A number higher than that of any question.
    name: toName(seed, 100_000 + index),
    person: 0,
    atMs: random.between(QUIET_MS, lengthMs),
  }));
  const runs = Array.from({ length: isAlone ? 0 : Math.floor(turns / 8) }, (_, index) => ({
    place: Math.floor(random.between(0, places.length)),
    name: toName(seed, 200_000 + index),
    person: 0,
    atMs: random.between(0, lengthMs),
  }));
  const clock = Math.floor(random.between(0, processes));
  const kinds = !isAlone ? TOGETHER : random.next() < ALIVE_SHARE ? ALIVE : ALONE;
  const faults = planFaults(random, { places: places.length, lengthMs, ...kinds });
  return {
    seed,
    platform,
    isAlone,
    streams: !isAlone || random.next() < 0.6,
    threads: isAlone ? random.pick(THREADS) : "auto",
    roles: Array.from({ length: processes }, (_, index) => (hasRoles ? toRole(index, processes) : "all")),
    aheadMs: Array.from({ length: processes }, (_, index) => (index === clock && processes > 1 ? AHEAD_MS : 0)),
    places,
    questions,
    pictures,
    runs,
    faults,
  };
}

/** Two of five processes receive events, as in `compose.yaml`. */
function toRole(index: number, processes: number): Role {
  return index < Math.max(1, Math.floor(0.4 * processes)) ? "ingress" : "worker";
}

interface Extent {
  seed: number;
  turns: number;
  places: number;
  lengthMs: number;
  isAlone: boolean;
}

/** In each place, people ask several questions in quick succession, then none for a while. */
function planQuestions(random: Random, { seed, turns, places, lengthMs, isAlone }: Extent): PlannedQuestion[] {
  const questions: PlannedQuestion[] = [];
  while (questions.length < turns) {
    const place = Math.floor(random.between(0, places));
    let atMs = random.between(0, lengthMs);
    const count = Math.min(turns - questions.length, random.pick([1, 2, 3, 4]));
    for (let index = 0; index < count; index++) {
      const name = toName(seed, questions.length);
      questions.push(planQuestion(random, { place, name, atMs, leftMs: lengthMs - atMs, isAlone }));
      atMs += random.wait(900);
    }
  }
  return questions.toSorted((a, b) => a.atMs - b.atMs);
}

function planQuestion(
  random: Random,
  { leftMs, isAlone, ...where }: { place: number; name: string; atMs: number; leftMs: number; isAlone: boolean },
): PlannedQuestion {
  // A run cannot end before a silent upstream times out, so no upstream is silent near the end.
  const bad = leftMs > STALL_MS && random.next() < 0.05 ? random.pick(STALLS) : random.pick(isAlone ? BAD_ALONE : BAD);
  const ways = [...(random.next() < 0.15 ? [bad] : []), random.pick(GOOD)];
  const doing =
    random.next() < 0.2
      ? { what: random.pick(isAlone ? DOINGS_ALONE : DOINGS), afterMs: random.between(0, 2_500) }
      : undefined;
  return {
    ...where,
    person: random.pick([0, 0, 1]),
    script: { ways, paceMs: random.pick([5, 25, 60, 120, 200]) },
    ...(doing !== undefined && { doing }),
  };
}

interface Faults {
  kinds: readonly FaultKind[];
  everyMs: number;
}

function planFaults(
  random: Random,
  { places, lengthMs, kinds, everyMs }: Faults & Pick<Extent, "places" | "lengthMs">,
): PlannedFault[] {
  const weighted = kinds.flatMap((kind) => Array<FaultKind>(FAULTS[kind][2]).fill(kind));
  const faults: PlannedFault[] = [];
  for (let atMs = QUIET_MS + random.wait(everyMs); atMs < lengthMs; atMs += random.wait(everyMs)) {
    const kind = random.pick(weighted);
    const [minMs, maxMs] = FAULTS[kind];
    const place = Math.floor(random.between(0, places));
    faults.push({ kind, atMs, lastsMs: random.between(minMs, maxMs), share: random.next(), place });
  }
  return faults;
}

/** Describes the plan with one line per event, in chronological order. */
export function describePlan(plan: Plan): string {
  const { seed, platform, aheadMs, places, questions, pictures, runs, faults } = plan;
  const lines = [
    ...questions.map(({ atMs, name, place, person, script, doing }) => ({
      atMs,
      text: `${name} in ${places[place]} ${place} by person ${person}; upstream: ${script.ways.join(", then ")}, ${script.paceMs} ms${
        doing === undefined ? "" : `; ${doing.what} after ${Math.round(doing.afterMs)} ms`
      }`,
    })),
    ...runs.map(({ atMs, name, place }) => ({ atMs, text: `${name} is due in ${places[place]} ${place}` })),
    ...pictures.map(({ atMs, name, place }) => ({ atMs, text: `/imagine ${name} in ${places[place]} ${place}` })),
    ...faults.map(({ atMs, kind, lastsMs, share, place }) => ({
      atMs,
      text: `FAULT ${kind} for ${Math.round(lastsMs)} ms, share ${share.toFixed(2)}, place ${place}`,
    })),
  ].toSorted((a, b) => a.atMs - b.atMs);
  return [
    `seed ${seed} on ${platform}: ${describeRoles(plan)}, clocks ahead by ${aheadMs.join(", ")} ms`,
    ...lines.map(({ atMs, text }) => `${(atMs / 1_000).toFixed(2).padStart(8)}  ${text}`),
  ].join("\n");
}

export function describeRoles({ roles, isAlone }: Pick<Plan, "roles" | "isAlone">): string {
  if (isAlone) return "one process without Redis";

  const count = (role: Role) => roles.filter((one) => one === role).length;
  if (count("all") === roles.length) return `${roles.length} processes`;
  return `${count("ingress")} processes that listen and ${count("worker")} that answer`;
}
