/**
 * Chooses which waiting work starts next, so that people and channels share the slots fairly. The functions are pure,
 * so every queue chooses the same way.
 */

import type { EventLane } from "../port/events.ts";

/** Work that waits for a slot or has one. `person` and `channel` are keys that are only compared for equality. */
export interface Work {
  kind: EventLane["kind"];
  person: string;
  channel: string;
  /** True if at least `SUSPECT_DEATHS` processes died during this work. */
  isSuspect: boolean;
}

/**
 * People take turns in rounds: start-time fair queueing in which each piece of work costs one round. `next` maps a
 * person to the round of their next work. People who are not in `next` are in round `now`.
 */
export interface Rounds {
  readonly now: number;
  readonly next: ReadonlyMap<string, number>;
}

export const FIRST_ROUND: Rounds = { now: 0, next: new Map() };

export interface Choice {
  /** The index of the chosen work in `waiting`. */
  index: number;
  rounds: Rounds;
}

/** Images take long, so separate limits keep them from using up the slots for conversations. */
const MAX_DRAWINGS = 8;
const MAX_DRAWINGS_OF_PERSON = 2;
const MAX_DRAWINGS_IN_CHANNEL = 4;
/** The share of the slots that is reserved for channels without running work. */
const RESERVE_FOR_CHANNELS = 1 / 8;

/**
 * Chooses the oldest work that can start, from the person whose round is the earliest. Returns undefined if no work can
 * start. `waiting` is in order of arrival. `places` counts the slots for conversations, not those for images.
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
    // The chosen work is in the current round, so no other work can be in an earlier one.
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
 * A question can start if its author holds fewer slots than are free. Of 16 slots, the first person thus gets up to 8
 * and the second up to 4, so the next person still finds a slot. The last slots are reserved for channels without
 * running work. A short task (`errand`) only needs a free slot.
 */
function createAdmission(running: readonly Work[], places: number): (work: Work) => boolean {
  const free = places - running.filter(({ kind }) => kind !== "drawing").length;
  const reserve = Math.floor(places * RESERVE_FOR_CHANNELS);
  const hasSuspect = running.some(({ isSuspect }) => isSuspect);

  return ({ kind, person, channel, isSuspect }) => {
    // Only one suspect runs at a time. Otherwise the next death of a process would count against all of them.
    if (isSuspect && hasSuspect) return false;
    if (kind === "errand") return free > 0;
    const alike = running.filter((work) => work.kind === kind);
    const ofPerson = alike.filter((work) => work.person === person).length;
    const inChannel = alike.filter((work) => work.channel === channel).length;
    if (kind === "question") return ofPerson < free - (inChannel > 0 ? reserve : 0);
    return alike.length < MAX_DRAWINGS && ofPerson < MAX_DRAWINGS_OF_PERSON && inChannel < MAX_DRAWINGS_IN_CHANNEL;
  };
}
