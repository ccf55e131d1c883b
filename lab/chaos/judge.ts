import type { TurnRecord } from "../src/turn/record.ts";
import { answerTo, namesIn, squeeze, unedited } from "../test/support/fault-loop/answers.ts";
import { REPEATED, RETRY_AFTER_MS } from "../test/support/fault-loop/upstream-faults.ts";
import {
  AMNESIA,
  findShrinks,
  hasNote,
  isBegunAnew,
  judge as judgeEndings,
  NOTICE,
  UNKNOWN_CALL,
  UNRESERVED,
  withoutNotes,
} from "../test/support/fault-loop/verdict.ts";
import type { Shown } from "../test/support/fault-loop/world.ts";
import type { Life } from "./cluster.ts";
import type { Disturbance, Record, SaidQuestion } from "./record.ts";
import { excuseShrink, REDIS_MARGIN_MS } from "./shrinks.ts";
import type { Call } from "./stage.ts";

export const COLUMNS = [
  "lost",
  "doubled",
  "stuck",
  "out of order",
  "wrong text",
  "history",
  "retry-after",
  "fenced",
  "overspent",
  "acted twice",
  "dashboard",
  "secrets",
  "other",
] as const;

/**
 * `lost`: a question without an answer. `doubled`: a second answer. `stuck`: an answer that was left on its cursor, or
 * work that was left undone. `out of order`: an answer that began before an earlier one of its conversation had ended.
 * `wrong text`: not what the upstream said. `history`: gaps or doubles in it. `retry-after`: a call within a wait that
 * was told. `fenced`: a call by a process whose work another one had taken over. `overspent`: requests for which no
 * room was reserved. `acted twice`: a second call of a tool that acts, for one question. `dashboard`: a number of the dashboard
 * that is not what happened. `secrets`: secrets, or what
 * people said, where they may not stand. `other`: what else the platforms forbid, and processes that ended by themselves.
 */
export type Column = (typeof COLUMNS)[number];

export interface Finding {
  column: Column;
  sentence: string;
  /** The questions it is about, and the bot's messages. */
  names: readonly string[];
  messageIds: readonly string[];
}

export interface Verdict {
  findings: Finding[];
  /** The number of findings that were excused, by the excuse. */
  excused: Map<string, number>;
}

interface Court {
  record: Record;
  /** The bot's messages, without pictures, by id. */
  shown: ReadonlyMap<string, Shown>;
  turnOf: ReadonlyMap<string, TurnRecord>;
  lifeOf(host: string): Life | undefined;
  find(column: Column, sentence: string, about?: { names?: readonly string[]; messageIds?: readonly string[] }): void;
  excuse(why: string): void;
}

/** Looks at everything that was recorded and says what is wrong. */
export function judge(record: Record): Verdict {
  const findings: Finding[] = [];
  const excused = new Map<string, number>();
  const pictures = record.plan.pictures.map(({ name }) => name);
  // A message that only promises a picture or a command's answer is judged with the pictures asked for, not as an answer.
  const isAnswer = ({ text }: Shown) =>
    text !== "" && !pictures.some((name) => text.includes(name)) && !NOTICE.test(text);
  const shown = record.shown.filter(isAnswer);
  const court: Court = {
    record,
    shown: new Map(shown.map((message) => [message.id, message])),
    turnOf: new Map(record.turns.flatMap((turn) => turn.messageIds.map((id) => [id, turn]))),
    lifeOf: (host) => record.lives.find(({ hosts }) => hosts.includes(host)),
    find: (column, sentence, { names = namesIn(sentence), messageIds = [] } = {}) =>
      void findings.push({ column, sentence, names, messageIds }),
    excuse: (why) => void excused.set(why, (excused.get(why) ?? 0) + 1),
  };
  judgeAnswers(court);
  judgePictures(court);
  judgeShrinks(court);
  judgeBreaks(court);
  judgeOrder(court);
  judgeHistories(court);
  judgeWaits(court);
  judgeUpstreamWaits(court);
  judgeFences(court);
  judgeSpending(court);
  judgeBoard(court);
  judgeSecrets(court);
  return { findings, excused };
}

// --- endings ---

/** Longest that a conversation is tried to be read, and that the first words of its answer then wait for a place. */
const READ_MS = 15_000;

/** As every round of `npm run bench -- turns` is judged. */
function judgeAnswers({ record, shown, find, excuse }: Court): void {
  const { removed, begunAnew, turns, asked, acts } = record;
  const isHeard = (question: SaidQuestion) => !record.told(question).isGivenUp;
  const heard = record.questions.filter(isHeard);
  for (let count = heard.length; count < record.questions.length; count++) {
    excuse("the platform gave it up: nobody was there to hear it");
  }
  const complaints = judgeEndings({
    questions: record.questions.map((question) => ({ ...question, isTold: isHeard(question) })),
    removed,
    begunAnew,
    mayGiveUp: (turn) => mayGiveUp(record, turn, excuse),
    turns,
    asked,
    shown: [...shown.values()],
    heard: new Set(heard.map(({ id }) => id)),
    takenAway: new Set(),
    isDisturbed: false,
    wasKilled: true,
    hadSlowCalls: true,
    breaks: [],
    acts,
  });
  for (const { fault, sentence, messageId } of complaints) {
    const column = fault === "wrong" || fault === "taken back" ? "wrong text" : fault;
    find(column, sentence, messageId === undefined ? undefined : { messageIds: [messageId] });
  }
  for (const turn of turns) judgeAsked(record, turn, find);
  for (const { id, text, statesAtMs } of shown.values()) {
    if (UNKNOWN_CALL.test(text)) excuse("an answer says that nobody knows whether its tool acted");
    const [firstAtMs = 0, lastAtMs = firstAtMs] = [statesAtMs[0], statesAtMs.at(-1)];
    const isAway = ({ kind }: Disturbance) => kind.startsWith("redis-") || kind === "stop";
    const wasAway = isDisturbed(record, firstAtMs - READ_MS, lastAtMs, isAway);
    const about = { messageIds: [id] };
    if (AMNESIA.test(text) && wasAway)
      excuse("an answer says that Redis was away when its conversation was to be read");
    else if (AMNESIA.test(text))
      find("wrong text", `An answer knows nothing of its conversation: ${text.slice(0, 60)}`, about);
    if (UNRESERVED.test(text) && wasAway)
      excuse("an answer says that Redis was away when its limits were to be looked up");
    else if (UNRESERVED.test(text))
      find("wrong text", `A question was refused though Redis was there: ${text.slice(0, 60)}`, about);
  }
  if (record.open > 0) find("stuck", `${record.open} events were left undone.`);
}

/** After more deaths than this without coming any further, the bot gives an answer up, which is no fault in so much trouble. */
const MAX_DEATHS = 5;

function mayGiveUp({ questions, disturbances, shown }: Record, turn: TurnRecord, excuse: Court["excuse"]): boolean {
  const own = shown.filter(({ id }) => turn.posted.includes(id));
  const text = own.map((message) => withoutNotes(message.text)).join("\n");
  const names = namesIn(text.slice(0, text.indexOf(".") + 1));
  // Nothing is given up of which everything stands there.
  if (names.length > 0 && squeeze(text) === squeeze(answerTo(names))) return false;
  const saidAtMs = Math.min(...questions.filter(({ id }) => turn.messageIds.includes(id)).map((one) => one.saidAtMs));
  const endedAtMs = Math.max(...own.flatMap(({ statesAtMs }) => statesAtMs));
  const deaths = disturbances.filter(
    ({ kind, fromMs, toMs }) =>
      (kind === "kill" || kind === "stop" || kind.startsWith("redis-")) && fromMs < endedAtMs && toMs > saidAtMs,
  );
  if (deaths.length <= MAX_DEATHS) return false;
  excuse("an answer was given up whose processes had died too often before it came any further");
  return true;
}

/** Finds questions that were answered together with others, but left out of the request to the upstream. */
function judgeAsked(record: Record, { messageIds }: TurnRecord, find: Court["find"]): void {
  const own = record.questions.filter(({ id }) => messageIds.includes(id) && !record.removed.has(id));
  const requests = own.flatMap(({ name }) => record.asked(name));
  // One that was told late may stand before answers that came meanwhile: what was said before was read with another one.
  const said = requests.flatMap(({ names, earlier }) => [...names, ...earlier.flatMap(({ text }) => namesIn(text))]);
  const asked = new Set(said.map(unedited));
  if (asked.size === 0) return;
  for (const { name } of own)
    if (!asked.has(name)) find("lost", `${name} was left out of what the upstream was asked.`);
}

/** Stands in the place that was promised to a command whose process ended before it could be stored. */
const APOLOGY = /^I could not store this/;

/** Stands there for a command that could not be stored yet, until it is. */
const PROMISE = /^My memory is out of reach right now\. I will do this/;

/** Each picture that was asked for has one message, with the picture or with a word why there is none. */
function judgePictures({ record, find, excuse }: Court): void {
  let apologies = record.shown.filter(({ text }) => APOLOGY.test(text)).length;
  let promises = record.shown.filter(({ text }) => PROMISE.test(text)).length;
  for (const { name } of record.plan.pictures) {
    const messages = record.shown.filter(({ text }) => text.includes(name));
    const about = { names: [name], messageIds: messages.map(({ id }) => id) };
    const isUnheard = messages.length === 0 && !record.drawn.includes(name) && wasDeaf(record, name);
    if (isUnheard) excuse("a command that nobody took over, as its person was told");
    else if (messages.length === 0 && apologies-- > 0 && wasDeaf(record, name))
      excuse("a command that could not be stored, as its person was told");
    else if (messages.length === 0 && wasKilledAfter(record, name) && promises-- > 0)
      excuse("a command whose process was killed while it could not store it");
    else if (messages.length === 0) find("lost", `Nothing came of the picture ${name}.`, about);
    if (messages.length > 1) find("doubled", `${messages.length} messages show the picture ${name}.`, about);
    const open = messages.find(
      ({ text, buttons }) => buttons.every(({ label }) => label !== "Again") && text.includes(`Drawing \`${name}\``),
    );
    if (open !== undefined) find("stuck", `The picture ${name} is still being drawn: ${open.text.slice(0, 60)}`, about);
  }
}

/** Longest until the bot hears again: a process counts as gone, another one waits for its turn to identify, and connects. */
const DEAF_MS = 10_000;

const askedAtMs = (record: Record, name: string): number =>
  record.notes.find(({ what }) => what.endsWith(` a picture of ${name}`))?.atMs ?? 0;

/** True when some process was killed after somebody had asked for a picture. */
function wasKilledAfter(record: Record, name: string): boolean {
  return record.disturbances.some(({ kind, fromMs }) => kind === "kill" && fromMs >= askedAtMs(record, name));
}

/** True when something was broken while somebody asked for a picture. Both platforms deliver a command once, and tell the person if nobody takes it. */
function wasDeaf(record: Record, name: string): boolean {
  const atMs = askedAtMs(record, name);
  return isDisturbed(record, atMs - DEAF_MS, atMs + ACKNOWLEDGE_MS);
}

/** An answer only grows: all that people could read of it stays. */
function judgeShrinks({ record, shown, find, excuse }: Court): void {
  for (const turn of record.turns) {
    for (const id of turn.posted) {
      const message = shown.get(id);
      const [takenBack] = message === undefined ? [] : findShrinks(message);
      if (takenBack === undefined) continue;
      const why = excuseShrink(record, turn, id);
      if (why !== undefined) excuse(why);
      else find("wrong text", `An answer took back ${takenBack}.`, { messageIds: [id] });
    }
  }
}

/** Violations that other functions judge, by the recorded calls and messages. */
const JUDGED_ELSEWHERE = new Set(["early-retry", "rate-limited", "stale-edit", "backwards"]);
const LATE = new Set(["late-ack", "late-acknowledgement"]);
/** Both platforms wait for three seconds. https://docs.slack.dev/apis/events-api#error-handling, and the same at Discord. */
const ACKNOWLEDGE_MS = 3_000;

function judgeBreaks({ record, lifeOf, find, excuse }: Court): void {
  for (const { kind, sentence, messageId, atMs } of record.breaks) {
    if (JUDGED_ELSEWHERE.has(kind)) continue;
    const call = record.calls.find((one) => one.messageId === messageId && isDuring(one, atMs));
    if (kind === "dead-stream" && call !== undefined && wasFrozen(record, lifeOf(call.host), call.atMs)) {
      excuse(FROZEN);
      continue;
    }
    const fromMs = atMs - ACKNOWLEDGE_MS;
    const isOfRedis = (one: Disturbance) => one.kind.startsWith("redis-");
    const isBroken =
      isDisturbed(record, fromMs, atMs) || isDisturbed(record, fromMs - REDIS_MARGIN_MS, atMs, isOfRedis);
    const isExcused = LATE.has(kind) && isBroken;
    if (isExcused) excuse("acknowledged late or not at all, while something was broken");
    else
      find(kind === "double-post" ? "doubled" : "other", `${kind}: ${sentence}`, {
        messageIds: messageId ? [messageId] : [],
      });
  }
  for (const { crash } of record.lives) if (crash !== undefined) find("other", crash);
}

function isDuring({ atMs: fromMs, endedAtMs = fromMs }: Call, atMs: number): boolean {
  return fromMs <= atMs && atMs <= endedAtMs;
}

function isDisturbed(
  { disturbances }: Record,
  fromMs: number,
  toMs: number,
  isIt: (one: Disturbance) => boolean = () => true,
): boolean {
  return disturbances.some((one) => one.fromMs < toMs && one.toMs > fromMs && isIt(one));
}

// --- order ---

/** Longer than a message takes to reach every process. */
const HEARD_MS = 1_000;
/** Troubles of Discord's that concern the bot's own calls alone. */
const OF_CALLS: ReadonlySet<string | undefined> = new Set(["429", "500", "502", "reset", "slow"]);

/** True when the service knew of `one` before `other`; undefined where that cannot be told. */
function isBefore({ record }: Court, one: SaidQuestion, other: SaidQuestion): boolean | undefined {
  const [first, second] = [record.told(one), record.told(other)];
  if (second.toldAtMs !== undefined) return (first.acknowledgedAtMs ?? Number.POSITIVE_INFINITY) < second.toldAtMs;
  // One of them was read by whoever began to hear.
  if (first.sessionIds && second.sessionIds?.isDisjointFrom(first.sessionIds)) return undefined;
  const isOfHearing = ({ trouble }: Disturbance) => !OF_CALLS.has(trouble);
  const isUnrest = isDisturbed(record, one.saidAtMs - HEARD_MS, other.saidAtMs + HEARD_MS, isOfHearing);
  return isUnrest ? undefined : one.saidAtMs < other.saidAtMs;
}

/** Questions of each conversation in the order in which they were said. */
function conversationsOf({ record, turnOf }: Court): SaidQuestion[][] {
  const groups = Map.groupBy(record.questions, ({ id }) => turnOf.get(id)?.conversationId);
  groups.delete(undefined);
  return [...groups.values()].map((group) => group.toSorted((a, b) => a.saidAtMs - b.saidAtMs));
}

function judgeOrder(court: Court): void {
  for (const questions of conversationsOf(court)) {
    for (const [index, one] of questions.entries()) {
      for (const other of questions.slice(index + 1)) judgePair(court, one, other);
    }
  }
}

function judgePair(court: Court, one: SaidQuestion, other: SaidQuestion): void {
  const { record, turnOf, find, excuse } = court;
  const [first, second] = [turnOf.get(one.id), turnOf.get(other.id)];
  if (first === undefined || second === undefined) return;
  const pair = `${one.name} and ${other.name}`;
  const isInOrder =
    first === second
      ? first.messageIds.indexOf(one.id) < first.messageIds.indexOf(other.id)
      : areApart(court, first, second, isBegunAnew(record, first));
  if (isInOrder) return;
  const isKnown = isBefore(court, one, other);
  if (isKnown === true) {
    find("out of order", `${pair} were not answered one after the other.`, {
      messageIds: [...first.posted, ...second.posted],
    });
  } else excuse("their order was not known: told again, or heard while a process was away");
}

/** True when the second answer began after the first had ended, or, if the first was begun anew, after it had begun. */
function areApart({ shown }: Court, first: TurnRecord, second: TurnRecord, isAnew: boolean): boolean {
  const own = (turn: TurnRecord) => turn.posted.flatMap((id) => shown.get(id) ?? []);
  const begin = (turn: TurnRecord) => Math.min(...own(turn).map(({ statesAtMs }) => statesAtMs[0] ?? 0));
  const end = Math.max(...own(first).map(lastGrowthOf));
  return begin(second) >= (isAnew ? begin(first) : end);
}

/** The last time at which a message said something new, Unix milliseconds. A note on a deleted question may come later. */
function lastGrowthOf({ states, statesAtMs }: Shown): number {
  const letters = states.map((text) => withoutNotes(text).replaceAll(/[^\p{L}\p{N}]+/gu, ""));
  const last = letters.findLastIndex((text, index) => index === 0 || text !== letters[index - 1]);
  return statesAtMs[last] ?? 0;
}

// --- history ---

function judgeHistories(court: Court): void {
  const { record, find } = court;
  const said = new Map<string, number>();
  for (const [id, entries] of record.histories) {
    const ids = entries.map((entry) => entry.id);
    if (new Set(ids).size < ids.length) find("history", `${id} has an entry twice.`);
    for (const name of entries.flatMap(({ author, messages }) =>
      author === undefined ? [] : namesIn(textOf(messages)),
    )) {
      said.set(unedited(name), (said.get(unedited(name)) ?? 0) + 1);
    }
  }
  for (const [name, count] of said) if (count > 1) find("history", `${name} stands ${count} times in the history.`);
  for (const questions of conversationsOf(court)) judgeConversation(court, questions, said);
}

function judgeConversation(court: Court, questions: readonly SaidQuestion[], said: ReadonlyMap<string, number>): void {
  const { record, turnOf, shown, find } = court;
  const [first] = questions;
  const conversationId = first && turnOf.get(first.id)?.conversationId;
  const entries = record.histories.get(conversationId ?? "") ?? [];
  const answers = entries.filter(({ author }) => author === undefined).map(({ messages }) => squeeze(textOf(messages)));
  for (const { id, name } of questions) {
    if (record.removed.has(id)) continue;
    if (!said.has(name)) find("history", `${name} is missing in the history.`);
    const turn = turnOf.get(id);
    const text = turn?.posted.map((message) => shown.get(message)?.text ?? "").join("\n") ?? "";
    const names = namesIn(text.slice(0, text.indexOf(".") + 1));
    // Only the first of those that were answered together asks for their answer; a marked one may be there or not.
    if (turn?.messageIds[0] !== id || names.length === 0 || squeeze(text) !== squeeze(answerTo(names))) continue;
    if (!answers.some((answer) => answer.includes(squeeze(answerTo(names))))) {
      find("history", `The answer to ${names.join(" ")} is missing in the history.`, { messageIds: turn.posted });
    }
  }
  const order = entries.flatMap(({ author, messages }) =>
    author === undefined ? [] : namesIn(textOf(messages)).map(unedited),
  );
  for (const [index, one] of questions.entries()) {
    for (const other of questions.slice(index + 1)) {
      const [at, after] = [order.indexOf(one.name), order.indexOf(other.name)];
      if (at < 0 || after < 0 || at < after || isBefore(court, one, other) !== true) continue;
      find("history", `${one.name} stands behind ${other.name} in the history.`);
    }
  }
}

function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return value.map(textOf).join("\n");
  if (typeof value !== "object" || value === null) return "";
  return [("content" in value && textOf(value.content)) || "", ("text" in value && textOf(value.text)) || ""].join("");
}

// --- waits ---

/** Until others can know of a wait: calls that were on their way. */
const UNDER_WAY_MS = 250;
/** Until what a process was told is kept outside of it. */
const TOLD_MS = 1_000;

function judgeWaits(court: Court): void {
  for (const [budget, calls] of Map.groupBy(court.record.calls, (call) => call.budget)) {
    const waits = calls.flatMap(({ endedAtMs, retryAfterMs, host }) =>
      endedAtMs === undefined || retryAfterMs === undefined
        ? []
        : [{ fromMs: endedAtMs, toMs: endedAtMs + retryAfterMs, host }],
    );
    for (const call of calls) {
      const wait = waits.find(({ fromMs, toMs }) => call.atMs > fromMs && call.atMs < toMs);
      if (wait !== undefined) judgeEarly(court, wait, call.atMs, call.host, budget, call);
    }
  }
}

function judgeUpstreamWaits(court: Court): void {
  for (const { name, id } of court.record.questions) {
    // People who ask again ask at once.
    if (court.record.begunAnew.has(id)) continue;
    const requests = court.record.asked(name);
    for (const [index, { way, atMs, host }] of requests.entries()) {
      const next = requests[index + 1];
      if (way !== "rate-limited" || next === undefined || next.atMs >= atMs + RETRY_AFTER_MS) continue;
      judgeEarly(
        court,
        { fromMs: atMs, toMs: atMs + RETRY_AFTER_MS, host },
        next.atMs,
        next.host,
        `the upstream for ${name}`,
      );
    }
  }
}

interface Wait {
  fromMs: number;
  toMs: number;
  host: string;
}

function judgeEarly(
  court: Court,
  { fromMs, toMs, host }: Wait,
  atMs: number,
  by: string,
  budget: string,
  call?: Call,
): void {
  const { lifeOf, find, excuse } = court;
  if (atMs < fromMs + UNDER_WAY_MS) return excuse("a call was on its way when the wait was told");
  const teller = lifeOf(host);
  if (teller !== undefined && wasAway(court, teller, fromMs, fromMs + TOLD_MS)) {
    return excuse("the process that was told to wait died with it, or stood still");
  }
  const about = call?.messageId === undefined ? {} : { messageIds: [call.messageId] };
  const who = `${lifeOf(by)?.name} called ${budget}`;
  find(
    "retry-after",
    `${who} ${Math.round(toMs - atMs)} ms before the end of a wait that ${teller?.name} was told.`,
    about,
  );
}

/** True when a process was stopped, cut off or dead at some time between these. */
function wasAway({ record }: Court, life: Life, fromMs: number, toMs: number): boolean {
  if ((life.endedAtMs ?? Number.POSITIVE_INFINITY) < toMs) return true;
  return record.disturbances.some((one) => isOf(one, life) && one.fromMs < toMs && one.toMs > fromMs);
}

function isOf({ slot, kind }: Disturbance, life: Life): boolean {
  return kind !== "platform" && (slot === undefined || slot === life.slot);
}

// --- fences ---

/**
 * A message has one writer at a time. Another one may come, but who had it before comes back only when that one was
 * away, or when people had the answer begin anew.
 */
function judgeFences(court: Court): void {
  const { record, lifeOf, find, excuse } = court;
  const anew = new Set(
    record.turns.flatMap(({ messageIds, posted }) => (messageIds.some((id) => record.begunAnew.has(id)) ? posted : [])),
  );
  for (const [messageId, calls] of Map.groupBy(record.calls, (call) => call.messageId)) {
    if (messageId === undefined || anew.has(messageId)) continue;
    const earlier = new Set<Life>();
    let owner: { life: Life; sinceMs: number } | undefined;
    for (const { atMs, host, method } of calls.toSorted((a, b) => a.atMs - b.atMs)) {
      const life = lifeOf(host);
      if (life === undefined || life === owner?.life) continue;
      if (owner !== undefined && earlier.has(life) && !wasAway(court, owner.life, owner.sinceMs, atMs)) {
        if (wasFrozen(record, life, atMs)) {
          excuse(FROZEN);
          continue;
        }
        const sentence = `${life.name} wrote (${method}) to a message that ${owner.life.name} had taken over.`;
        find("fenced", sentence, {
          names: namesIn(court.shown.get(messageId)?.text.slice(0, 200) ?? ""),
          messageIds: [messageId],
        });
        continue;
      }
      earlier.add(life);
      owner = { life, sinceMs: atMs };
    }
  }
}

const FROZEN = "a call was under way when its process was stopped, and went out when that went on";

/**
 * True when a process had been stopped until right before. It looks at its lease before each call, but nothing can be
 * looked at between that and the network.
 */
function wasFrozen({ disturbances }: Record, life: Life | undefined, atMs: number): boolean {
  return disturbances.some(
    ({ kind, slot, toMs }) => kind === "stop" && slot === life?.slot && toMs <= atMs && atMs < toMs + UNDER_WAY_MS,
  );
}

// --- spending ---

/** Every request that the upstream took, by one that lives or has died, is counted or has room reserved for it. */
function judgeSpending({ record, find }: Court): void {
  const { spent, questions, asked } = record;
  const names = new Set(questions.map(({ name }) => unedited(name)));
  const taken = [...names].flatMap((name) => asked(name)).filter(({ way }) => !REPEATED.has(way)).length;
  const missing = taken - spent.counted - spent.held;
  if (missing > 0) find("overspent", `${missing} of ${taken} requests were made without a reservation.`);
}

// --- dashboard ---

/** Ends that the page of failures leaves out. */
const NO_FAILURES = new Set(["complete", "stopped", "waiting", "refused"]);

/** The dashboard says of this run what its records say, and the records say what people see. */
function judgeBoard(court: Court): void {
  const { record, shown, find } = court;
  const { board, turns, questions, acts, begunAnew, removed, plan } = record;
  const ends = turns.flatMap((turn) => turn.ends ?? []);
  for (const outcome of new Set([...ends, ...Object.keys(board.turns)])) {
    const count = ends.filter((one) => one === outcome).length;
    judgeNumber(court, `turns that ended as "${outcome}"`, board.turns[outcome], count);
  }
  judgeNumber(court, "failures", board.failures, ends.filter((outcome) => !NO_FAILURES.has(outcome)).length);
  for (const { ends: own = [], posted, messageIds } of turns) {
    const text = posted.map((id) => shown.get(id)?.text ?? "").join("\n");
    if (text === "" || messageIds.some((id) => removed.has(id))) continue;
    const isWhole = own.at(-1) === "complete";
    if (isWhole === hasNote(text)) {
      const sentence = `A turn is told of as "${own.at(-1)}" whose answer ${isWhole ? "is marked" : "is whole"}.`;
      find("dashboard", sentence, { names: namesIn(text.slice(0, 200)), messageIds: posted });
    }
  }
  const drawn = plan.pictures.filter(({ name }) => record.shown.some(({ text }) => text.includes(name)));
  judgeNumber(court, "pictures", sumOf(board.pictures), drawn.length);
  // Calls for an answer that people had begun anew may be counted with its next end, or not at all.
  const loose = new Set(questions.filter(({ id }) => begunAnew.has(id) || removed.has(id)).map(({ name }) => name));
  const made = acts.filter((name) => !loose.has(unedited(name)));
  const isUnsure = ({ text }: Shown) => UNKNOWN_CALL.test(text);
  const most = acts.length + [...shown.values()].filter(isUnsure).length;
  judgeNumber(court, "calls of tools", sumOf(board.tools), made.length, most);
}

function judgeNumber({ find }: Court, what: string, told = 0, least: number, most = least): void {
  if (told >= least && told <= most) return;
  const truth = least === most ? String(least) : `${least} to ${most}`;
  find("dashboard", `The dashboard tells of ${told} ${what}; there were ${truth}.`);
}

function sumOf(counts: Readonly<{ [label: string]: number }>): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

// --- secrets ---

function judgeSecrets({ record, find }: Court): void {
  const { secrets, lives, shown, questions, plan } = record;
  const said = new Set([...questions, ...plan.pictures].map(({ name }) => name));
  for (const { name, lines } of lives) {
    for (const line of lines) {
      const secret = secrets.find((one) => one !== "" && line.includes(one));
      if (secret !== undefined) find("secrets", `${name} has logged ${secret}.`);
      const words = namesIn(line);
      if (words.some((word) => said.has(unedited(word)))) {
        find("secrets", `${name} has logged what a person said: ${line.slice(0, 200)}`);
      }
    }
  }
  for (const { text, id } of shown) {
    const secret = secrets.find((one) => one !== "" && text.includes(one));
    if (secret !== undefined) find("secrets", `A message says ${secret}.`, { messageIds: [id] });
  }
}
