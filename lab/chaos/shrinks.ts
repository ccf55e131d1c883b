import type { TurnRecord } from "../../src/turn/record.ts";
import { toSaidLetters } from "../support/taken-back.ts";
import type { Life } from "./cluster.ts";
import { isRestarted, withoutNotes } from "./endings.ts";
import type { Shown } from "./place.ts";
import type { Disturbance, Record } from "./record.ts";

/** Around a Redis outage, processes reconnect and store their progress with at most this delay. */
export const REDIS_MARGIN_MS = 1_000;

/** Returns why a message had to show less than before; undefined if nothing explains it. */
export function excuseShrink(record: Record, turn: TurnRecord, messageId: string): string | undefined {
  if (isRestarted(record, turn)) return "people restarted an answer, and the new one shows less";
  const own = turn.posted.flatMap((id) => record.shown.find((message) => message.id === id) ?? []);
  const at = own.findIndex(({ id }) => id === messageId);
  const message = own[at];
  if (message === undefined) return undefined;
  if (movesOn(message, own.slice(at + 1))) return "the end of a full message moved to the next one";
  if (readOtherConversation(record, turn)) {
    return "Redis was away, so the processes of an answer read different conversations";
  }
  if (!hasGrownUnsaved(record, message)) return undefined;
  return "an answer showed less for a moment: Redis could not store its progress before its process ended, froze or lost it to another one";
}

/**
 * True if Redis was unavailable or slow, and a later process then asked the model about other messages than the first
 * process. One of the two could not read the conversation.
 */
function readOtherConversation({ questions, disturbances, requestsFor }: Record, { messageIds }: TurnRecord): boolean {
  const own = questions.filter(({ id }) => messageIds.includes(id));
  const requests = own.flatMap(({ name }) => requestsFor(name)).toSorted((a, b) => a.atMs - b.atMs);
  const [first] = requests;
  if (first === undefined) return false;
  const other = requests.find(({ host, names }) => host !== first.host && names.join() !== first.names.join());
  if (other === undefined) return false;
  const askedAtMs = Math.min(...own.map((question) => question.askedAtMs));
  const isOfThen = ({ kind, fromMs, toMs }: Disturbance) =>
    kind.startsWith("redis-") && fromMs < other.atMs && toMs > askedAtMs - REDIS_MARGIN_MS;
  return disturbances.some(isOfThen);
}

/** True if all text that the message ever showed is now in this message or in those after it. */
function movesOn({ states, text }: Shown, following: readonly Shown[]): boolean {
  if (following.length === 0) return false;
  const whole = [text, ...following.map((message) => message.text)].map(toLetters).join("");
  return states.every((state) => whole.startsWith(toLetters(state)));
}

/**
 * True if the message lost only text that a process wrote while Redis was unavailable or slow, and if that process
 * ended or lost its work before Redis recovered.
 */
function hasGrownUnsaved(record: Record, { id, states, statesAtMs }: Shown): boolean {
  return states.every((state, index) => {
    const before = toLetters(states[index - 1] ?? "");
    if (toLetters(state).startsWith(before)) return true;
    // A process that takes over can show the same text again.
    const first = states.findIndex((one) => toLetters(one) === before);
    const [shownAtMs = 0, shrunkAtMs = 0] = [statesAtMs[first], statesAtMs[index]];
    const writer = writerOf(record, id, shownAtMs);
    if (writer === undefined || !isUnsaved(record, writer, shownAtMs)) return false;
    return hasEnded(record, writer, shownAtMs, shrunkAtMs) || writerOf(record, id, shrunkAtMs) !== writer;
  });
}

/** Returns the process that made the last call about a message before this time. */
function writerOf({ calls, lives }: Record, messageId: string, atMs: number): Life | undefined {
  const last = calls.filter((call) => call.messageId === messageId && call.atMs <= atMs).at(-1);
  return lives.find(({ hosts }) => last !== undefined && hosts.includes(last.host));
}

function isUnsaved({ disturbances }: Record, { slot }: Life, atMs: number): boolean {
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
