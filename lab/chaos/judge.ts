import { NOT_KEPT } from "../../adapters/slack/act/acknowledgement.ts";
import type { TurnRecord } from "../../src/turn/record.ts";
import { answerTo, namesIn, squeeze, unedited } from "./answers.ts";
import type { Life } from "./cluster.ts";
import {
  AMNESIA,
  findLosses,
  hasNote,
  isRestarted,
  judge as judgeEndings,
  NOTICE,
  UNKNOWN_CALL,
  UNRESERVED,
  withoutNotes,
} from "./endings.ts";
import type { Shown } from "./place.ts";
import type { AskedQuestion, Disturbance, Record } from "./record.ts";
import { excuseShrink, REDIS_MARGIN_MS } from "./shrinks.ts";
import type { Call } from "./stage.ts";
import { REFUSED, RETRY_AFTER_MS } from "./upstream-faults.ts";

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
  "schedules",
  "dashboard",
  "secrets",
  "other",
] as const;

/**
 * - `lost`: a question without an answer.
 * - `doubled`: a second answer.
 * - `stuck`: an answer or an event that was never finished.
 * - `out of order`: an answer that started before an earlier answer in its conversation ended.
 * - `wrong text`: a text that differs from the upstream's.
 * - `history`: missing or repeated entries in a conversation's history.
 * - `retry-after`: a call during a wait that the server had asked for.
 * - `fenced`: a call by a process after another process took over its work.
 * - `overspent`: requests that the bot sent without counting them first.
 * - `acted twice`: a second call of an acting tool for one question.
 * - `schedules`: a scheduled run that was lost or done twice.
 * - `dashboard`: a wrong number on the dashboard.
 * - `secrets`: secrets in logs or messages, or people's words in logs.
 * - `other`: other violations of the platform's rules, and unexpected exits of processes.
 */
export type Column = (typeof COLUMNS)[number];

export interface Finding {
  column: Column;
  sentence: string;
  /** Names of the affected questions and ids of the bot's affected messages. */
  names: readonly string[];
  messageIds: readonly string[];
}

export interface Verdict {
  findings: Finding[];
  /** Number of excused findings, by excuse. */
  excused: Map<string, number>;
}

interface Court {
  /** `record` leaves out the questions and turns in places that the bot lost; `whole` contains them. */
  record: Record;
  whole: Record;
  /** The bot's messages by id, without those that show images. */
  shown: ReadonlyMap<string, Shown>;
  turnOf: ReadonlyMap<string, TurnRecord>;
  lifeOf(host: string): Life | undefined;
  find(column: Column, sentence: string, about?: { names?: readonly string[]; messageIds?: readonly string[] }): void;
  excuse(why: string): void;
}

export function judge(whole: Record): Verdict {
  const { cutOff } = whole;
  const record: Record = {
    ...whole,
    questions: whole.questions.filter(({ id }) => !cutOff.has(id)),
    turns: whole.turns.filter(({ messageIds }) => !messageIds.some((id) => cutOff.has(id))),
  };
  const findings: Finding[] = [];
  const excused = new Map<string, number>();
  const pictures = record.plan.pictures.map(({ name }) => name);
  const runs = new Set(record.plan.runs.map(({ name }) => name));
  // Messages about images, and replies to commands or buttons, are not answers.
  const isAnswer = ({ text }: Shown) =>
    text !== "" && !pictures.some((name) => text.includes(name)) && !NOTICE.test(text);
  const shown = record.shown.filter(isAnswer);
  const court: Court = {
    record,
    whole,
    shown: new Map(shown.map((message) => [message.id, message])),
    turnOf: new Map(record.turns.flatMap((turn) => turn.messageIds.map((id) => [id, turn]))),
    lifeOf: (host) => record.lives.find(({ hosts }) => hosts.includes(host)),
    find(column, sentence, { names = namesIn(sentence), messageIds = [] } = {}) {
      const isOfRun = (column === "lost" || column === "doubled") && names.some((name) => runs.has(name));
      findings.push({ column: isOfRun ? "schedules" : column, sentence, names, messageIds });
    },
    excuse: (why) => void excused.set(why, (excused.get(why) ?? 0) + 1),
  };
  judgeAnswers(court);
  judgeCutOff(court);
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

/** Maximum time for reading a conversation, plus the maximum wait before an answer's first words. */
const READ_MS = 15_000;

/** In a place that the bot lost, checks only for duplicates. */
function judgeCutOff({ whole: { cutOff, questions, turns, acts }, find }: Court): void {
  for (const { id, name } of questions.filter((question) => cutOff.has(question.id))) {
    if (turns.filter(({ messageIds }) => messageIds.includes(id)).length > 1) find("doubled", `${name} has two turns.`);
    if (acts.filter((act) => act === name).length > 1) find("acted twice", `${name}: a tool acted more than once.`);
  }
}

function judgeAnswers({ record, shown, find, excuse }: Court): void {
  const { removed, restarted, turns, requestsFor, acts } = record;
  const isDelivered = (question: AskedQuestion) => !record.deliveryOf(question).isGivenUp;
  const delivered = record.questions.filter(isDelivered);
  for (let count = delivered.length; count < record.questions.length; count++) {
    excuse("no process was listening, and the platform stopped delivering the question");
  }
  const complaints = judgeEndings({
    questions: record.questions,
    removed,
    restarted,
    canGiveUp: (turn) => canGiveUp(record, turn, excuse),
    turns,
    requestsFor,
    shown: [...shown.values()],
    delivered: new Set(delivered.map(({ id }) => id)),
    deletedAnswers: record.deletedAnswers,
    acts,
  });
  for (const { fault, sentence, messageId } of complaints) {
    const column = fault === "wrong" ? "wrong text" : fault;
    find(column, sentence, messageId === undefined ? undefined : { messageIds: [messageId] });
  }
  for (const turn of turns) judgeAsked(record, turn, find);
  for (const { id, text, statesAtMs } of shown.values()) {
    if (UNKNOWN_CALL.test(text)) excuse("an answer says that it is unknown whether its tool acted");
    const [firstAtMs = 0, lastAtMs = firstAtMs] = [statesAtMs[0], statesAtMs.at(-1)];
    const isAway = ({ kind }: Disturbance) => kind.startsWith("redis-") || kind === "stop";
    const wasAway = isDisturbed(record, firstAtMs - READ_MS, lastAtMs, isAway);
    const about = { messageIds: [id] };
    if (AMNESIA.test(text) && wasAway)
      excuse("an answer says that Redis was away, so the bot could not read its conversation");
    else if (AMNESIA.test(text))
      find("wrong text", `An answer ignores its conversation although Redis was there: ${text.slice(0, 60)}`, about);
    if (UNRESERVED.test(text) && wasAway)
      excuse("an answer says that Redis was away, so the bot could not check the limits");
    else if (UNRESERVED.test(text))
      find("wrong text", `The bot refused a question although Redis was there: ${text.slice(0, 60)}`, about);
  }
  if (record.open.events > 0) find("stuck", `${record.open.events} events are still open.`);
  for (const run of record.open.runs) find("schedules", `A scheduled run is not over: ${run}`);
}

/** The bot can give an answer up after this many deaths without progress. */
const MAX_DEATHS = 5;

function canGiveUp({ questions, disturbances, shown }: Record, turn: TurnRecord, excuse: Court["excuse"]): boolean {
  const own = shown.filter(({ id }) => turn.posted.includes(id));
  const text = own.map((message) => withoutNotes(message.text)).join("\n");
  const names = namesIn(text.slice(0, text.indexOf(".") + 1));
  // The bot must not give up an answer that people already see completely.
  if (names.length > 0 && squeeze(text) === squeeze(answerTo(names))) return false;
  const askedAtMs = Math.min(...questions.filter(({ id }) => turn.messageIds.includes(id)).map((one) => one.askedAtMs));
  const endedAtMs = Math.max(...own.flatMap(({ statesAtMs }) => statesAtMs));
  const deaths = disturbances.filter(
    ({ kind, fromMs, toMs }) =>
      (kind === "kill" || kind === "stop" || kind.startsWith("redis-")) && fromMs < endedAtMs && toMs > askedAtMs,
  );
  if (deaths.length <= MAX_DEATHS) return false;
  excuse("the bot gave an answer up after too many processes died without progress");
  return true;
}

/** Finds questions that share an answer with others, but that no request to the upstream contained. */
function judgeAsked(record: Record, { messageIds }: TurnRecord, find: Court["find"]): void {
  const own = record.questions.filter(({ id }) => messageIds.includes(id) && !record.removed.has(id));
  const requests = own.flatMap(({ name }) => record.requestsFor(name));
  // A question can arrive after its turn's first request. It can also be among the earlier messages of a request.
  const mentioned = requests.flatMap(({ names, earlier }) => [
    ...names,
    ...earlier.flatMap(({ text }) => namesIn(text)),
  ]);
  const covered = new Set(mentioned.map(unedited));
  if (covered.size === 0) return;
  for (const { name } of own)
    if (!covered.has(name)) find("lost", `${name} is missing in the request to the upstream.`);
}

/** The reply to a command if the process ended before it could store the command. */
const APOLOGY = /^I couldn't save this/;

/** The reply to a command while the bot cannot store the command. */
const PROMISE = /^My storage is unavailable\. I'll do this/;

/** Each requested image needs exactly one message, which shows the image or says why it is missing. */
function judgePictures({ record, find, excuse }: Court): void {
  let apologies = record.shown.filter(({ text }) => APOLOGY.test(text)).length;
  let promises = record.shown.filter(({ text }) => PROMISE.test(text)).length;
  for (const { name } of record.plan.pictures) {
    const messages = record.shown.filter(({ text }) => text.includes(name));
    const about = { names: [name], messageIds: messages.map(({ id }) => id) };
    const reply = record.replies.get(name);
    if (messages.length === 0 && reply === undefined && wasDeaf(record, name))
      excuse("no process took a command, and the platform showed the person an error");
    else if (messages.length === 0 && reply === NOT_KEPT && wasDeaf(record, name))
      excuse("the bot could not store a command, and told the person");
    else if (messages.length === 0 && apologies-- > 0 && wasDeaf(record, name))
      excuse("the bot could not store a command, and told the person");
    else if (messages.length === 0 && wasKilledAfter(record, name) && promises-- > 0)
      excuse("a process was killed while it could not store a command");
    else if (messages.length === 0) find("lost", `The image ${name} is missing: ${describeReply(reply)}.`, about);
    if (messages.length > 1) find("doubled", `${messages.length} messages show the image ${name}.`, about);
    const open = messages.find(
      ({ text, buttons }) => buttons.every(({ label }) => label !== "Again") && text.includes(`Creating \`${name}\``),
    );
    if (open !== undefined)
      find("stuck", `The bot is still creating the image ${name}: ${open.text.slice(0, 60)}`, about);
  }
}

function describeReply(reply: string | undefined): string {
  if (reply === undefined) return "the bot did not acknowledge its command";
  return reply === "" ? "the bot acknowledged its command" : `the bot replied "${reply}"`;
}

/**
 * Maximum time in which no process listens: until the old process counts as dead, and a new one has waited to identify
 * and has connected.
 */
const DEAF_MS = 10_000;

const requestedAtMs = (record: Record, name: string): number =>
  record.notes.find(({ what }) => what.endsWith(` an image of ${name}`))?.atMs ?? 0;

/** True if a process was killed after someone requested this image. */
function wasKilledAfter(record: Record, name: string): boolean {
  return record.disturbances.some(({ kind, fromMs }) => kind === "kill" && fromMs >= requestedAtMs(record, name));
}

/**
 * True if some fault was active when someone requested this image. Both platforms deliver a command only once, and show
 * the person an error if the bot does not acknowledge the command.
 */
function wasDeaf(record: Record, name: string): boolean {
  const atMs = requestedAtMs(record, name);
  return isDisturbed(record, atMs - DEAF_MS, atMs + ACKNOWLEDGE_MS);
}

/** Finds answers that lost text: an answer must only grow. */
function judgeShrinks({ record, shown, find, excuse }: Court): void {
  for (const turn of record.turns) {
    for (const id of turn.posted) {
      const message = shown.get(id);
      const [lost] = message === undefined ? [] : findLosses(message);
      if (lost === undefined) continue;
      const why = excuseShrink(record, turn, id);
      if (why !== undefined) excuse(why);
      else find("wrong text", `An answer lost ${lost}.`, { messageIds: [id] });
    }
  }
}

/** Violations that other functions find in the recorded calls and messages. */
const JUDGED_ELSEWHERE = new Set(["early-retry", "rate-limited", "stale-edit", "backwards"]);
const LATE = new Set(["late-ack", "late-acknowledgement"]);
/** Both platforms wait three seconds. Slack: https://docs.slack.dev/apis/events-api#error-handling */
const ACKNOWLEDGE_MS = 3_000;

function judgeBreaks({ record, lifeOf, find, excuse }: Court): void {
  for (const { kind, sentence, messageId, atMs } of record.breaks) {
    if (JUDGED_ELSEWHERE.has(kind)) continue;
    if (kind === "invalid-request" && record.cutOff.size > 0) {
      excuse("the bot made a call in a place that it had lost");
      continue;
    }
    const call = record.calls.find((one) => one.messageId === messageId && isDuring(one, atMs));
    if (kind === "dead-stream" && call !== undefined && wasFrozen(record, lifeOf(call.host), call.atMs)) {
      excuse(FROZEN);
      continue;
    }
    const fromMs = atMs - ACKNOWLEDGE_MS;
    const isOfRedis = (one: Disturbance) => one.kind.startsWith("redis-");
    const isBroken =
      isDisturbed(record, fromMs, atMs) || isDisturbed(record, fromMs - REDIS_MARGIN_MS, atMs, isOfRedis);
    // A single process that restarts receives its whole backlog at once.
    const isCatchingUp = record.plan.isAlone && record.lives.length > 1;
    const isExcused = LATE.has(kind) && (isBroken || isCatchingUp);
    if (isExcused) excuse("the bot acknowledged an event late or never while something was broken");
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
const DELIVERY_MS = 1_000;
/** Faults of Discord that affect only the bot's calls. */
const OF_CALLS: ReadonlySet<string | undefined> = new Set(["429", "500", "502", "reset", "slow"]);

/** True if the service received `one` before `other`; undefined if the record does not show the order. */
function isBefore({ record }: Court, one: AskedQuestion, other: AskedQuestion): boolean | undefined {
  const [first, second] = [record.deliveryOf(one), record.deliveryOf(other)];
  if (second.deliveredAtMs !== undefined)
    return (first.acknowledgedAtMs ?? Number.POSITIVE_INFINITY) < second.deliveredAtMs;
  // Two different sessions received the messages, and one of the sessions read its message later.
  if (first.sessionIds && second.sessionIds?.isDisjointFrom(first.sessionIds)) return undefined;
  const isOfDelivery = ({ trouble }: Disturbance) => !OF_CALLS.has(trouble);
  const isDisturbing = isDisturbed(record, one.askedAtMs - DELIVERY_MS, other.askedAtMs + DELIVERY_MS, isOfDelivery);
  return isDisturbing ? undefined : one.askedAtMs < other.askedAtMs;
}

/** Returns each conversation's questions in the order in which people wrote them. */
function conversationsOf({ record, turnOf }: Court): AskedQuestion[][] {
  // Leave scheduled runs out, because a run starts at any time after it is due.
  const asked = record.questions.filter(({ isScheduled }) => isScheduled !== true);
  const groups = Map.groupBy(asked, ({ id }) => turnOf.get(id)?.conversationId);
  groups.delete(undefined);
  return [...groups.values()].map((group) => group.toSorted((a, b) => a.askedAtMs - b.askedAtMs));
}

function judgeOrder(court: Court): void {
  for (const questions of conversationsOf(court)) {
    for (const [index, one] of questions.entries()) {
      for (const other of questions.slice(index + 1)) judgePair(court, one, other);
    }
  }
}

function judgePair(court: Court, one: AskedQuestion, other: AskedQuestion): void {
  const { record, turnOf, find, excuse } = court;
  const [first, second] = [turnOf.get(one.id), turnOf.get(other.id)];
  if (first === undefined || second === undefined) return;
  const pair = `${one.name} and ${other.name}`;
  const isInOrder =
    first === second
      ? first.messageIds.indexOf(one.id) < first.messageIds.indexOf(other.id)
      : areApart(court, first, second, isRestarted(record, first));
  if (isInOrder) return;
  const isKnown = isBefore(court, one, other);
  if (isKnown === true) {
    find("out of order", `The bot did not answer ${pair} one after the other.`, {
      messageIds: [...first.posted, ...second.posted],
    });
  } else excuse("the order of two questions is unknown: one was delivered twice, or while a process was away");
}

/**
 * True if the second answer started after the first one ended. If people restarted the first answer, the second one
 * only has to start after the first one started.
 */
function areApart({ shown }: Court, first: TurnRecord, second: TurnRecord, isRestart: boolean): boolean {
  const own = (turn: TurnRecord) => turn.posted.flatMap((id) => shown.get(id) ?? []);
  const startOf = (turn: TurnRecord) => Math.min(...own(turn).map(({ statesAtMs }) => statesAtMs[0] ?? 0));
  const end = Math.max(...own(first).map(lastGrowthOf));
  return startOf(second) >= (isRestart ? startOf(first) : end);
}

/**
 * Returns when a message last showed new words, in Unix milliseconds. A note about a deleted question can appear later.
 */
function lastGrowthOf({ states, statesAtMs }: Shown): number {
  const letters = states.map((text) => withoutNotes(text).replaceAll(/[^\p{L}\p{N}]+/gu, ""));
  const last = letters.findLastIndex((text, index) => index === 0 || text !== letters[index - 1]);
  return statesAtMs[last] ?? 0;
}

// --- history ---

function judgeHistories(court: Court): void {
  const { record, find } = court;
  const counts = new Map<string, number>();
  for (const [id, entries] of record.histories) {
    const ids = entries.map((entry) => entry.id);
    if (new Set(ids).size < ids.length) find("history", `${id} contains an entry twice.`);
    for (const name of entries.flatMap(({ author, messages }) =>
      author === undefined ? [] : namesIn(textOf(messages)),
    )) {
      counts.set(unedited(name), (counts.get(unedited(name)) ?? 0) + 1);
    }
  }
  for (const [name, count] of counts) if (count > 1) find("history", `${name} is ${count} times in the history.`);
  for (const questions of conversationsOf(court)) judgeConversation(court, questions, counts);
}

function judgeConversation(
  court: Court,
  questions: readonly AskedQuestion[],
  counts: ReadonlyMap<string, number>,
): void {
  const { record, turnOf, shown, find } = court;
  const [first] = questions;
  const conversationId = first && turnOf.get(first.id)?.conversationId;
  const entries = record.histories.get(conversationId ?? "") ?? [];
  const answers = entries.filter(({ author }) => author === undefined).map(({ messages }) => squeeze(textOf(messages)));
  for (const { id, name } of questions) {
    if (record.removed.has(id)) continue;
    if (!counts.has(name)) find("history", `${name} is missing in the history.`);
    const turn = turnOf.get(id);
    const text = turn?.posted.map((message) => shown.get(message)?.text ?? "").join("\n") ?? "";
    const names = namesIn(text.slice(0, text.indexOf(".") + 1));
    // Check a shared answer only once, for its first question. The history can lack an answer that has a note.
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
      find("history", `${one.name} comes after ${other.name} in the history.`);
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

/** A call that arrives within this time after a wait starts was already on its way. */
const IN_FLIGHT_MS = 250;
/** Maximum time until a process has told the others about a wait. */
const SHARING_MS = 1_000;

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
    // A person can press Retry without waiting.
    if (court.record.restarted.has(id)) continue;
    const requests = court.record.requestsFor(name);
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
  if (atMs < fromMs + IN_FLIGHT_MS) return excuse("a call was already on its way when the wait started");
  const limited = lifeOf(host);
  if (limited !== undefined && wasAway(court, limited, fromMs, fromMs + SHARING_MS)) {
    return excuse("the process that had to wait died or froze before it could share the wait");
  }
  const about = call?.messageId === undefined ? {} : { messageIds: [call.messageId] };
  const who = `${lifeOf(by)?.name} called ${budget}`;
  find(
    "retry-after",
    `${who} ${Math.round(toMs - atMs)} ms before the end of a wait that ${limited?.name} had received.`,
    about,
  );
}

/** True if the process was stopped, disconnected or dead at some moment between these times. */
function wasAway({ record }: Court, life: Life, fromMs: number, toMs: number): boolean {
  if ((life.endedAtMs ?? Number.POSITIVE_INFINITY) < toMs) return true;
  return record.disturbances.some((one) => isOf(one, life) && one.fromMs < toMs && one.toMs > fromMs);
}

function isOf({ slot, kind }: Disturbance, life: Life): boolean {
  return kind !== "platform" && (slot === undefined || slot === life.slot);
}

// --- fences ---

/**
 * Finds messages to which two processes wrote at once. An earlier writer can continue only if its successor was away,
 * or if people restarted the answer.
 */
function judgeFences(court: Court): void {
  const { record, lifeOf, find, excuse } = court;
  const ignored = new Set(
    record.turns.flatMap(({ messageIds, posted }) => (messageIds.some((id) => record.restarted.has(id)) ? posted : [])),
  );
  for (const [messageId, calls] of Map.groupBy(record.calls, (call) => call.messageId)) {
    if (messageId === undefined || ignored.has(messageId)) continue;
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
        const sentence = `${life.name} wrote (${method}) to a message after ${owner.life.name} took it over.`;
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

const FROZEN = "a process was paused during a call and sent it when it resumed";

/**
 * True if the process was stopped until just before this time. It may have checked its lease before it was stopped and
 * made the call afterwards.
 */
function wasFrozen({ disturbances }: Record, life: Life | undefined, atMs: number): boolean {
  return disturbances.some(
    ({ kind, slot, toMs }) => kind === "stop" && slot === life?.slot && toMs <= atMs && atMs < toMs + IN_FLIGHT_MS,
  );
}

// --- spending ---

/**
 * Finds requests that the upstream accepted but that the bot never counted or reserved. Requests of dead processes must
 * be counted too.
 */
function judgeSpending({ whole: { counted, questions, requestsFor }, find }: Court): void {
  const names = new Set(questions.map(({ name }) => unedited(name)));
  const taken = [...names].flatMap((name) => requestsFor(name)).filter(({ way }) => !REFUSED.has(way)).length;
  const missing = taken - counted;
  if (missing > 0) find("overspent", `${missing} of ${taken} requests had no reservation.`);
}

// --- dashboard ---

/** Outcomes that the page of failures leaves out. */
const NO_FAILURES = new Set(["complete", "stopped", "waiting", "refused"]);

/** Compares the dashboard with the records, and the records with the messages that people see. */
function judgeBoard(court: Court): void {
  const { record, whole, shown, find } = court;
  const { board, questions, acts, restarted, removed, plan } = whole;
  const ends = whole.turns.flatMap((turn) => turn.ends ?? []);
  for (const outcome of new Set([...ends, ...Object.keys(board.turns)])) {
    const count = ends.filter((one) => one === outcome).length;
    judgeNumber(court, `turns that ended as "${outcome}"`, board.turns[outcome], count);
  }
  judgeNumber(court, "failures", board.failures, ends.filter((outcome) => !NO_FAILURES.has(outcome)).length);
  for (const { ends: own = [], posted, messageIds } of record.turns) {
    const text = posted.map((id) => shown.get(id)?.text ?? "").join("\n");
    if (text === "" || posted.some((id) => record.deletedAnswers.has(id)) || messageIds.some((id) => removed.has(id)))
      continue;
    const isWhole = own.at(-1) === "complete";
    if (isWhole === hasNote(text)) {
      const sentence = `The outcome of a turn is "${own.at(-1)}", but its answer ${isWhole ? "is marked as partial" : "is whole"}.`;
      find("dashboard", sentence, { names: namesIn(text.slice(0, 200)), messageIds: posted });
    }
  }
  const drawn = plan.pictures.filter(({ name }) => record.shown.some(({ text }) => text.includes(name)));
  judgeNumber(court, "images", sumOf(board.pictures), drawn.length);
  // A restarted answer's tool calls can count with its next outcome, or not at all.
  const loose = new Set(questions.filter(({ id }) => restarted.has(id) || removed.has(id)).map(({ name }) => name));
  const made = acts.filter((name) => !loose.has(unedited(name)));
  // Not every such answer is among the messages: people can delete it, or the bot can lose its place.
  const isUnsure = ({ posted, trace }: TurnRecord) =>
    posted.some((id) => UNKNOWN_CALL.test(shown.get(id)?.text ?? "")) ||
    trace?.calls.some(({ state }) => state === "unknown") === true;
  const most = acts.length + whole.turns.filter(isUnsure).length;
  judgeNumber(court, "tool calls", sumOf(board.tools), made.length, most);
}

function judgeNumber({ find }: Court, what: string, shown = 0, least: number, most = least): void {
  if (shown >= least && shown <= most) return;
  const truth = least === most ? String(least) : `${least} to ${most}`;
  find("dashboard", `The dashboard shows ${shown} ${what}, but there were ${truth}.`);
}

function sumOf(counts: Readonly<{ [label: string]: number }>): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

// --- secrets ---

function judgeSecrets({ whole: { secrets, lives, shown, questions, plan }, find }: Court): void {
  const allNames = new Set([...questions, ...plan.pictures].map(({ name }) => name));
  for (const { name, lines } of lives) {
    for (const line of lines) {
      const secret = secrets.find((one) => one !== "" && line.includes(one));
      if (secret !== undefined) find("secrets", `${name} logged ${secret}.`);
      const words = namesIn(line);
      if (words.some((word) => allNames.has(unedited(word)))) {
        find("secrets", `${name} logged a person's words: ${line.slice(0, 200)}`);
      }
    }
  }
  for (const { text, id } of shown) {
    const secret = secrets.find((one) => one !== "" && text.includes(one));
    if (secret !== undefined) find("secrets", `A message contains ${secret}.`, { messageIds: [id] });
  }
}
