/** Chooses the next work so that people and channels share the slots. Pure, so all queues choose alike. */

import type { EventLane } from "../port/events.ts";

/** `person` and `channel` are only compared for equality. */
export interface Work {
  kind: EventLane["kind"];
  person: string;
  channel: string;
  /** True if processes died during this work. */
  isSuspect: boolean;
}

/**
 * People take turns in rounds (start-time fair queueing; each piece of work counts as one). `next` has the rounds of
 * people whose next work is later than `now`.
 */
export interface Rounds {
  readonly now: number;
  readonly next: ReadonlyMap<string, number>;
}

export const FIRST_ROUND: Rounds = { now: 0, next: new Map() };

export interface Choice {
  /** Index in `waiting`. */
  index: number;
  rounds: Rounds;
}

/** Images take long, so they have their own limit. */
const MAX_DRAWINGS = 8;
const MAX_DRAWINGS_OF_PERSON = 2;
const MAX_DRAWINGS_IN_CHANNEL = 4;
/** The share of the slots for channels without running work. */
const RESERVE_FOR_CHANNELS = 1 / 8;

/**
 * Chooses the oldest work of the person in the earliest round. `waiting` is in the order of arrival. `places` is the
 * number of slots without those for images. Undefined if no work can start.
 */
export function chooseNext(
  rounds: Rounds,
  waiting: readonly Work[],
  running: readonly Work[],
  places: number,
): Choice | undefined {
  const mayBegin = createAdmission(running, places);
  let chosen: { index: number; person: string; round: number } | undefined;
  for (const [index, work] of waiting.entries()) {
    const round = roundOf(rounds, work.person);
    if ((chosen === undefined || round < chosen.round) && mayBegin(work))
      chosen = { index, person: work.person, round };
    // No round can be earlier than this one.
    if (chosen?.round === rounds.now) break;
  }
  if (chosen === undefined) return undefined;
  const { index, person, round } = chosen;
  const next = [...rounds.next, [person, round + 1] as const].filter(([, own]) => own > round);
  return { index, rounds: { now: round, next: new Map(next) } };
}

function roundOf({ now, next }: Rounds, person: string): number {
  return Math.max(now, next.get(person) ?? now);
}

/**
 * A question can start if its author has fewer slots than are free: of 16 slots, the first person gets up to 8 and a
 * second one 4, so the next asker still finds a slot. The last slots are for channels without running work. Short tasks
 * only need a free slot.
 */
function createAdmission(running: readonly Work[], places: number): (work: Work) => boolean {
  const free = places - running.filter(({ kind }) => kind !== "drawing").length;
  const reserve = Math.floor(places * RESERVE_FOR_CHANNELS);
  const hasSuspect = running.some(({ isSuspect }) => isSuspect);

  return ({ kind, person, channel, isSuspect }) => {
    // Otherwise the next death would count against all suspects.
    if (isSuspect && hasSuspect) return false;
    if (kind === "errand") return free > 0;
    const alike = running.filter((work) => work.kind === kind);
    const ofPerson = alike.filter((work) => work.person === person).length;
    const inChannel = alike.filter((work) => work.channel === channel).length;
    if (kind === "question") return ofPerson < free - (inChannel > 0 ? reserve : 0);
    return alike.length < MAX_DRAWINGS && ofPerson < MAX_DRAWINGS_OF_PERSON && inChannel < MAX_DRAWINGS_IN_CHANNEL;
  };
}
