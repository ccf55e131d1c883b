/**
 * Chooses the next work: shares the places for parallel work among people and channels. Pure and on plain data, so that
 * every queue decides alike, wherever it keeps its events.
 */

import type { EventLane } from "../port/events.ts";

/** Work that waits for a place, or has one. `person` and `channel` are keys, compared for equality. */
export interface Work {
  kind: EventLane["kind"];
  person: string;
  channel: string;
  /** The platform's limit that its replies share with those of other lanes; absent where nothing is known of it. */
  budget?: string;
  /** The process died while it ran, and not for the first time. */
  isSuspect: boolean;
}

/**
 * The rounds in which people take turns, start-time fair queueing with each piece of work counted as one: `next` has
 * the round of a person's next work where that is yet to come, and everybody else is in the round that it is `now`.
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

/** Pictures take long: what is drawn is bounded by itself, so that it takes no place from those who talk. */
export const MAX_DRAWINGS = 8;
const MAX_DRAWINGS_OF_PERSON = 2;
const MAX_DRAWINGS_IN_CHANNEL = 4;
/** The share of the places that is reserved for channels in which nothing runs. */
const RESERVE_FOR_CHANNELS = 1 / 8;

/**
 * Chooses the work to begin: of the person in the earliest round, and of several the oldest. `waiting` is in order of
 * arrival; `places` counts all but drawings. Undefined: nothing may begin.
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
    // No round is earlier than this one.
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
 * Decides which work may begin beside that which runs. A question may begin only while its author holds fewer places than
 * are free: of 16 places the first person takes 8 at most, a second one 4, so that whoever asks next finds one. The last
 * places are left to channels in which nothing runs. Errands wait only while everything is taken.
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
    // Alone among its kind: then the next death of the process is not blamed on all that ran at the last one.
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
