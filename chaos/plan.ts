import { toName } from "../test/support/fault-loop/answers.ts";
import type { Script } from "../test/support/fault-loop/upstream.ts";
import type { UpstreamWay } from "../test/support/fault-loop/upstream-faults.ts";
import { createRandom, type Random } from "../test/support/pacing/random.ts";

export type Platform = "slack" | "discord";

/** An action of a person on their question or its answer. */
export type Doing = "edit" | "remove" | "stop" | "retry";

export interface PlannedQuestion {
  /** The index of its place. */
  place: number;
  name: string;
  person: number;
  atMs: number;
  script: Script;
  doing?: { what: Doing; afterMs: number };
}

/** A picture that somebody asks for by a command. */
export interface PlannedPicture {
  place: number;
  name: string;
  person: number;
  atMs: number;
}

/** The tasks of a process: see `ROLE`. */
export type Role = "all" | "ingress" | "worker";

export type PlaceKind = "channel" | "direct" | "thread";

/**
 * A fault around the processes. `kill` and `end` are SIGKILL and SIGTERM, both followed by a restart; `roll` is a SIGTERM
 * for one process after another, as in a deploy; `stop` is SIGSTOP and then SIGCONT. `redis-kill` restarts Redis on its
 * disk's content, `redis-freeze` stops it for a while, `redis-slow` delays one process's traffic with it, `redis-cut`
 * cuts one process's connections. `platform` is one of the platform's own troubles.
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
  /** Selects the process, or the platform's trouble: from 0 to 1, as a share of them all. */
  share: number;
  /** In which of the places, where it happens in one. */
  place: number;
}

/** One run: all that happens from outside. Its seed is all that it depends on. Times are milliseconds from its start. */
export interface Plan {
  seed: number;
  platform: Platform;
  /** The role of each process. */
  roles: Role[];
  /** Milliseconds by which each process's clock is ahead. */
  aheadMs: number[];
  places: PlaceKind[];
  questions: PlannedQuestion[];
  pictures: PlannedPicture[];
  faults: PlannedFault[];
}

export interface PlanOptions {
  seed: number;
  turns: number;
  platform: Platform;
  processes: number;
  /** Some processes hear and the others answer; each does both otherwise. */
  hasRoles?: boolean;
}

/** Questions that are asked per second, all places together. */
const PER_SECOND = 8;
/** In one place, over a whole run. */
const QUESTIONS_PER_PLACE = 12;
/** Between two faults, on average. */
const FAULT_MS = 2_500;
/** Nothing is broken at first, so that everybody is known to everybody. */
const QUIET_MS = 1_500;
/** Longer than a silent upstream is listened to. */
const STALL_MS = 35_000;
const AHEAD_MS = 90_000;

const DOINGS: readonly Doing[] = ["edit", "remove", "stop", "stop", "retry"];
const PLACES: readonly PlaceKind[] = ["channel", "thread", "thread", "direct"];
/** Nothing of the answer comes, or its beginning; what follows is said to whoever asks again. */
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
const GOOD: readonly UpstreamWay[] = ["answer", "answer", "answer", "answer", "no-done", "odd-framing", "json", "tool"];
/** From the shortest to the longest that each lasts; how often it comes beside the others. */
const FAULTS: Readonly<Record<FaultKind, readonly [minMs: number, maxMs: number, weight: number]>> = {
  kill: [100, 2_500, 4],
  end: [100, 1_500, 2],
  roll: [100, 500, 1],
  // Longer than a lease, and shorter.
  stop: [1_000, 8_000, 3],
  "redis-kill": [50, 2_500, 1],
  "redis-freeze": [200, 2_500, 1],
  "redis-slow": [1_000, 4_000, 2],
  "redis-cut": [0, 0, 2],
  platform: [200, 1_500, 8],
};

export function planRun({ seed, turns, platform, processes, hasRoles = false }: PlanOptions): Plan {
  const random = createRandom(seed);
  const lengthMs = (turns / PER_SECOND) * 1_000;
  const places = Array.from({ length: Math.max(1, Math.ceil(turns / QUESTIONS_PER_PLACE)) }, () => random.pick(PLACES));
  const questions = planQuestions(random, { seed, turns, places: places.length, lengthMs });
  const pictures = Array.from({ length: Math.floor(turns / 25) }, (_, index) => ({
    place: Math.floor(random.between(0, places.length)),
    // No question has such a number.
    name: toName(seed, 100_000 + index),
    person: 0,
    atMs: random.between(QUIET_MS, lengthMs),
  }));
  const clock = Math.floor(random.between(0, processes));
  return {
    seed,
    platform,
    roles: Array.from({ length: processes }, (_, index) => (hasRoles ? toRole(index, processes) : "all")),
    aheadMs: Array.from({ length: processes }, (_, index) => (index === clock && processes > 1 ? AHEAD_MS : 0)),
    places,
    questions,
    pictures,
    faults: planFaults(random, places.length, lengthMs),
  };
}

/** Two of five hear, as in `compose.yaml`. */
function toRole(index: number, processes: number): Role {
  return index < Math.max(1, Math.floor(0.4 * processes)) ? "ingress" : "worker";
}

interface Extent {
  seed: number;
  turns: number;
  places: number;
  lengthMs: number;
}

/** Bursts: in each place several questions follow each other quickly, then people are silent for a while. */
function planQuestions(random: Random, { seed, turns, places, lengthMs }: Extent): PlannedQuestion[] {
  const questions: PlannedQuestion[] = [];
  while (questions.length < turns) {
    const place = Math.floor(random.between(0, places));
    let atMs = random.between(0, lengthMs);
    const count = Math.min(turns - questions.length, random.pick([1, 2, 3, 4]));
    for (let said = 0; said < count; said++) {
      const name = toName(seed, questions.length);
      questions.push(planQuestion(random, { place, name, atMs, leftMs: lengthMs - atMs }));
      atMs += random.wait(900);
    }
  }
  return questions.toSorted((a, b) => a.atMs - b.atMs);
}

function planQuestion(
  random: Random,
  { leftMs, ...where }: { place: number; name: string; atMs: number; leftMs: number },
): PlannedQuestion {
  // A silence is waited for, so it is at the end of no run.
  const bad = leftMs > STALL_MS && random.next() < 0.05 ? "stall" : random.pick(BAD);
  const ways = [...(random.next() < 0.15 ? [bad] : []), random.pick(GOOD)];
  const doing = random.next() < 0.2 ? { what: random.pick(DOINGS), afterMs: random.between(0, 2_500) } : undefined;
  return {
    ...where,
    person: random.pick([0, 0, 1]),
    script: { ways, paceMs: random.pick([5, 25, 60, 120, 200]) },
    ...(doing !== undefined && { doing }),
  };
}

function planFaults(random: Random, places: number, lengthMs: number): PlannedFault[] {
  const kinds = (Object.keys(FAULTS) as FaultKind[]).flatMap((kind) => Array<FaultKind>(FAULTS[kind][2]).fill(kind));
  const faults: PlannedFault[] = [];
  for (let atMs = QUIET_MS + random.wait(FAULT_MS); atMs < lengthMs; atMs += random.wait(FAULT_MS)) {
    const kind = random.pick(kinds);
    const [minMs, maxMs] = FAULTS[kind];
    const place = Math.floor(random.between(0, places));
    faults.push({ kind, atMs, lastsMs: random.between(minMs, maxMs), share: random.next(), place });
  }
  return faults;
}

/** One line for each thing that happens, in the order of time. */
export function describePlan({ seed, platform, roles, aheadMs, places, questions, pictures, faults }: Plan): string {
  const lines = [
    ...questions.map(({ atMs, name, place, person, script, doing }) => ({
      atMs,
      text: `${name} in ${places[place]} ${place} by person ${person}; upstream: ${script.ways.join(", then ")}, ${script.paceMs} ms${
        doing === undefined ? "" : `; ${doing.what} after ${Math.round(doing.afterMs)} ms`
      }`,
    })),
    ...pictures.map(({ atMs, name, place }) => ({ atMs, text: `/imagine ${name} in ${places[place]} ${place}` })),
    ...faults.map(({ atMs, kind, lastsMs, share, place }) => ({
      atMs,
      text: `FAULT ${kind} for ${Math.round(lastsMs)} ms, share ${share.toFixed(2)}, place ${place}`,
    })),
  ].toSorted((a, b) => a.atMs - b.atMs);
  return [
    `seed ${seed} on ${platform}: ${describeRoles(roles)}, clocks ahead by ${aheadMs.join(", ")} ms`,
    ...lines.map(({ atMs, text }) => `${(atMs / 1_000).toFixed(2).padStart(8)}  ${text}`),
  ].join("\n");
}

export function describeRoles(roles: readonly Role[]): string {
  const count = (role: Role) => roles.filter((one) => one === role).length;
  if (count("all") === roles.length) return `${roles.length} processes`;
  return `${count("ingress")} processes that hear and ${count("worker")} that answer`;
}
