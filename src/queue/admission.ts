/**
 * Chooses the next work, so that people and channels share the slots for parallel work. It is pure and works on plain
 * data, so all queues decide alike, wherever they store their events.
 */

import type { EventLane } from "../port/events.ts";

/** Work that waits for a slot or has one. `person` and `channel` are keys that are only compared for equality. */
export interface Work {
  kind: EventLane["kind"];
  person: string;
  channel: string;
  /** True if the process died more than once during this work. */
  isSuspect: boolean;
}

/**
 * People take turns in rounds. This is start-time fair queueing that counts each piece of work as one. `next` has the
 * round of a person's next work if it is later than `now`. Everyone else is in round `now`.
 */
export interface Rounds {
  readonly now: number;
  readonly next: ReadonlyMap<string, number>;
}

export const FIRST_ROUND: Rounds = { now: 0, next: new Map() };

export interface Choice {
  /** Index of the chosen work in `waiting`. */
  index: number;
  rounds: Rounds;
}

/** Images take long, so they have a separate limit and do not use up the slots for conversations. */
const MAX_DRAWINGS = 8;
const MAX_DRAWINGS_OF_PERSON = 2;
const MAX_DRAWINGS_IN_CHANNEL = 4;
/** The share of the slots that is reserved for channels without running work. */
const RESERVE_FOR_CHANNELS = 1 / 8;

/**
 * Chooses the work to start: the oldest work of the person in the earliest round. `waiting` is in the order of arrival.
 * `places` counts all slots except those for images. Undefined if no work can start.
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
 * Decides which work can start next to the running work. A question can start only if its author holds fewer slots than
 * are free. For example, of 16 slots the first person gets at most 8 and a second person 4, so the next asker still
 * finds a slot. The last slots are for channels without running work. Short tasks wait only if all slots are taken.
 */
function createAdmission(running: readonly Work[], places: number): (work: Work) => boolean {
  const drawings = running.filter(isDrawing);
  const free = places - (running.length - drawings.length);
  const reserve = Math.floor(places * RESERVE_FOR_CHANNELS);
  const questionsOf = countBy(running.filter(isQuestion), toPerson);
  const questionsIn = countBy(running.filter(isQuestion), toChannel);
  const drawingsOf = countBy(drawings, toPerson);
  const drawingsIn = countBy(drawings, toChannel);
  const hasSuspect = running.some(({ isSuspect }) => isSuspect);

  return ({ kind, person, channel, isSuspect }) => {
    // Only one suspect runs at a time. Otherwise the process's next death would be blamed on all of them.
    if (isSuspect && hasSuspect) return false;
    if (kind === "errand") return free > 0;
    if (kind === "question") {
      const isBusyChannel = (questionsIn.get(channel) ?? 0) > 0;
      return (questionsOf.get(person) ?? 0) < free - (isBusyChannel ? reserve : 0);
    }
    return (
      drawings.length < MAX_DRAWINGS &&
      (drawingsOf.get(person) ?? 0) < MAX_DRAWINGS_OF_PERSON &&
      (drawingsIn.get(channel) ?? 0) < MAX_DRAWINGS_IN_CHANNEL
    );
  };
}

function isDrawing({ kind }: Work): boolean {
  return kind === "drawing";
}

function isQuestion({ kind }: Work): boolean {
  return kind === "question";
}

function toPerson({ person }: Work): string {
  return person;
}

function toChannel({ channel }: Work): string {
  return channel;
}

function countBy(works: readonly Work[], toKey: (work: Work) => string): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const work of works) counts.set(toKey(work), (counts.get(toKey(work)) ?? 0) + 1);
  return counts;
}
