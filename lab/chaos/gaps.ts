import { squeeze } from "./answers.ts";
import type { Shown } from "./place.ts";
import type { Disturbance, Record } from "./record.ts";

/** A message that a process edited within this time before its death was still growing. */
const AT_WORK_MS = 3_000;

/** The time from the death of a message's writer until the message grows again. */
export interface Gap {
  ms: number;
  messageId: string;
  /** True if no other fault was active at that time. */
  isAlone: boolean;
}

/** Returns the gaps in all answers that continued later, shortest first. */
export function findGaps(record: Record): Gap[] {
  const again = new Set(
    record.turns.flatMap(({ messageIds, posted }) => (messageIds.some((id) => record.restarted.has(id)) ? posted : [])),
  );
  const kills = record.disturbances.filter(({ kind }) => kind === "kill");
  const isAlone = (kill: Disturbance, ms: number) =>
    record.disturbances.every((one) => one === kill || one.toMs < kill.fromMs || one.fromMs > kill.fromMs + ms);
  const gaps = kills.flatMap((kill) => {
    const written = writtenAt(record, kill);
    return record.shown
      .filter(({ id }) => written.has(id) && !again.has(id))
      .flatMap((one) => gapAt(one, kill.fromMs).map((ms) => ({ ms, messageId: one.id, isAlone: isAlone(kill, ms) })));
  });
  return gaps.toSorted((a, b) => a.ms - b.ms);
}

/** Returns the ids of the messages that the process was writing when it was killed. */
function writtenAt({ lives, calls }: Record, { slot, fromMs }: Disturbance): Set<string | undefined> {
  const life = lives.find((one) => one.slot === slot && one.startedAtMs < fromMs && (one.endedAtMs ?? 0) >= fromMs);
  const isItsOwn = (host: string) => life?.hosts.includes(host) === true;
  const late = calls.filter(({ host, atMs }) => isItsOwn(host) && atMs > fromMs - AT_WORK_MS && atMs < fromMs);
  return new Set(late.map(({ messageId }) => messageId));
}

/** Returns [] if the message was already complete. */
function gapAt({ states, statesAtMs }: Shown, atMs: number): number[] {
  const before = statesAtMs.findLastIndex((stateAtMs) => stateAtMs <= atMs);
  const length = squeeze(states[before] ?? "").length;
  const grown = states.findIndex((text, index) => index > before && squeeze(text).length > length);
  return before < 0 || grown < 0 ? [] : [(statesAtMs[grown] ?? 0) - atMs];
}
