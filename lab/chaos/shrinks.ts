import type { TurnRecord } from "../src/turn/record.ts";
import { isBegunAnew, withoutNotes } from "../test/support/fault-loop/verdict.ts";
import type { Shown } from "../test/support/fault-loop/world.ts";
import { toSaidLetters } from "../test/support/taken-back.ts";
import type { Life } from "./cluster.ts";
import type { Disturbance, Record } from "./record.ts";

/** Around a time when Redis was away or slow: until a process is connected again, and notes pass as usual. */
export const REDIS_MARGIN_MS = 1_000;

/** Why a message of an answer could not but show less than it had shown; undefined where it should not have. */
export function excuseShrink(record: Record, turn: TurnRecord, messageId: string): string | undefined {
  if (isBegunAnew(record, turn)) return "an answer that people had begin anew shows less than the one before it";
  const own = turn.posted.flatMap((id) => record.shown.find((message) => message.id === id) ?? []);
  const at = own.findIndex(({ id }) => id === messageId);
  const message = own[at];
  if (message === undefined) return undefined;
  if (movesOn(message, own.slice(at + 1))) return "the end of a full message moved to the next one";
  if (knewOtherwise(record, turn)) {
    return "an answer was begun and taken over with different knowledge of what had been said before: Redis was away";
  }
  if (!hasGrownUnnoted(record, message)) return undefined;
  return "an answer showed less for a moment: it had grown while Redis did not take notes, and its process ended, stood still or was taken over from before it did";
}

/**
 * True when the first request was about other messages than that of another process later, and Redis was away or slow
 * between the question and the later one: one of them could not read what had been said or answered before.
 */
function knewOtherwise({ questions, disturbances, asked }: Record, { messageIds }: TurnRecord): boolean {
  const own = questions.filter(({ id }) => messageIds.includes(id));
  const requests = own.flatMap(({ name }) => asked(name)).toSorted((a, b) => a.atMs - b.atMs);
  const [first] = requests;
  if (first === undefined) return false;
  const other = requests.find(({ host, names }) => host !== first.host && names.join() !== first.names.join());
  if (other === undefined) return false;
  const saidAtMs = Math.min(...own.map((question) => question.saidAtMs));
  const isOfThen = ({ kind, fromMs, toMs }: Disturbance) =>
    kind.startsWith("redis-") && fromMs < other.atMs && toMs > saidAtMs - REDIS_MARGIN_MS;
  return disturbances.some(isOfThen);
}

/** True when everything that a message ever showed stands, at the end, in it and in the messages behind it. */
function movesOn({ states, text }: Shown, behind: readonly Shown[]): boolean {
  if (behind.length === 0) return false;
  const whole = [text, ...behind.map((message) => message.text)].map(toLetters).join("");
  return states.every((state) => whole.startsWith(toLetters(state)));
}

/**
 * True when each text that was taken back had been written while Redis was away or slow, by a process that ended before
 * it recovered, or from which another one took over.
 */
function hasGrownUnnoted(record: Record, { id, states, statesAtMs }: Shown): boolean {
  return states.every((state, index) => {
    const before = toLetters(states[index - 1] ?? "");
    if (toLetters(state).startsWith(before)) return true;
    // Whoever takes over may show the same once more.
    const first = states.findIndex((one) => toLetters(one) === before);
    const [shownAtMs = 0, shrunkAtMs = 0] = [statesAtMs[first], statesAtMs[index]];
    const writer = writerOf(record, id, shownAtMs);
    if (writer === undefined || !isUnnoted(record, writer, shownAtMs)) return false;
    return hasEnded(record, writer, shownAtMs, shrunkAtMs) || writerOf(record, id, shrunkAtMs) !== writer;
  });
}

/** Whoever made the last call for a message until then. */
function writerOf({ calls, lives }: Record, messageId: string, atMs: number): Life | undefined {
  const last = calls.filter((call) => call.messageId === messageId && call.atMs <= atMs).at(-1);
  return lives.find(({ hosts }) => last !== undefined && hosts.includes(last.host));
}

function isUnnoted({ disturbances }: Record, { slot }: Life, atMs: number): boolean {
  return disturbances.some(
    (one) =>
      one.kind.startsWith("redis-") &&
      (one.slot === undefined || one.slot === slot) &&
      one.fromMs < atMs + REDIS_MARGIN_MS &&
      one.toMs > atMs - REDIS_MARGIN_MS,
  );
}

function hasEnded({ disturbances }: Record, { slot, endedAtMs }: Life, fromMs: number, toMs: number): boolean {
  if (endedAtMs !== undefined && endedAtMs >= fromMs && endedAtMs <= toMs) return true;
  return disturbances.some((one) => one.kind === "stop" && one.slot === slot && one.fromMs < toMs && one.toMs > fromMs);
}

function toLetters(state: string): string {
  return toSaidLetters(withoutNotes(state)) ?? "";
}
