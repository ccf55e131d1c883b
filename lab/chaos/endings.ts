import type { TurnRecord } from "../../src/turn/record.ts";
import { findTakenBack } from "../support/taken-back.ts";
import { answerTo, namesIn, squeeze, unedited } from "./answers.ts";
import type { Question, Shown } from "./place.ts";
import type { UpstreamRequest } from "./upstream.ts";

export type Fault = "lost" | "doubled" | "stuck" | "wrong" | "acted twice";

export interface Complaint {
  fault: Fault;
  sentence: string;
  messageId?: string;
}

/** A run's questions and answers at its end, and the evidence for judging them. */
export interface Remains {
  questions: readonly Question[];
  removed: ReadonlySet<string>;
  turns: readonly TurnRecord[];
  shown: readonly Shown[];
  /** Ids of the questions that the platform delivered to the service. */
  delivered: ReadonlySet<string>;
  deletedAnswers: ReadonlySet<string>;
  /** Ids of questions whose answers people restarted. */
  restarted: ReadonlySet<string>;
  /** True if so many processes died during the turn that the bot is allowed to give it up. */
  canGiveUp(turn: TurnRecord): boolean;
  /** Names of the questions for which a tool acted, one entry per action. */
  acts: readonly string[];
  requestsFor(name: string): readonly UpstreamRequest[];
}

/** The note under an unfinished answer. */
const NOTE =
  /(?:^|\n)_(?:I tried several times|Stopped|You stopped|`[^`\n]*` stopped this answer|This answer was stopped|The answer (?:hit|took|was interrupted|broke off)|A (?:content )?filter|The model (?:kept|hit|gave an empty)|The AI service|I can't (?:reach|write more)|I was shut down|I couldn't send|This (?:bot's account|conversation, with|channel accepts no more)|Something went wrong|I couldn't check your limits)[^\n]*_\s*$/;

/** The note under an answer that the bot gave up because too many processes died. */
const GIVEN_UP = /^_I tried several times [^\n]*_/m;

/** The text instead of an answer if the bot could not check the limits. */
export const UNRESERVED = /^_I couldn't check your limits[^\n]*_/m;

/** The note after a correct answer if the bot could not read the conversation. */
export const AMNESIA = /\s*_My storage is unavailable: [^\n]*_/;
/** The note after an answer if the bot could not read its whole thread. */
const UNREAD = /\s*_I could(?:n't read the| read only some of the) earlier messages here\._/;
/** The note after an answer whose question someone deleted. */
const QUESTION_GONE = /\s*_The question was deleted\.( This answer is incomplete\.)?_/;
/** The note after an answer if the bot does not know whether a tool call took effect. */
export const UNKNOWN_CALL = /\s*_I don't know whether [^\n]*_/;

/** Returns a message's text without the notes under the answer, because these change with the answer's state. */
export function withoutNotes(text: string): string {
  return withoutWarnings(text).replace(NOTE, "");
}

/**
 * Describes text that people could read in a message and that later disappeared. Returns [] if the message only grew.
 */
export function findLosses({ states }: Shown): string[] {
  return findTakenBack(states.map(withoutNotes));
}

/** True if people restarted the answer: with an edit, with Retry, or by deleting one of its several questions. */
export function isRestarted(
  {
    restarted,
    questions,
    removed,
    shown,
    requestsFor,
  }: Pick<Remains, "restarted" | "questions" | "removed" | "shown" | "requestsFor">,
  { messageIds, posted }: TurnRecord,
): boolean {
  if (messageIds.some((id) => restarted.has(id))) return true;
  if (messageIds.length > 1 && messageIds.some((id) => removed.has(id))) return true;
  // A deleted question can leave its turn, but an earlier text of the answer still names the question. If that text
  // breaks off inside the name, look for a request that contains this question and the turn's other questions.
  const own = questions.filter(({ id }) => messageIds.includes(id)).map(({ name }) => name);
  const states = shown.filter(({ id }) => posted.includes(id)).flatMap((message) => message.states);
  const named = new Set(states.flatMap(namesIn).map(unedited));
  return questions.some(({ id, name }) => {
    if (!removed.has(id) || messageIds.includes(id)) return false;
    const requests = [name, ...own].flatMap(requestsFor).map(({ names }) => names.map(unedited));
    return named.has(name) || requests.some((about) => about.includes(name) && about.some((one) => own.includes(one)));
  });
}

/** True if a message says that its answer is unfinished. */
export function hasNote(text: string): boolean {
  return NOTE.test(withoutWarnings(text));
}

function withoutWarnings(text: string): string {
  return [AMNESIA, UNREAD, QUESTION_GONE, UNKNOWN_CALL].reduce((rest, warning) => rest.replace(warning, ""), text);
}

/** Matches a reply to a button or a command. It is not an answer, even if everyone can see it. */
export const NOTICE =
  /^(?:This answer (?:has already ended|is too old)|Only the person who asked|I can no longer change this answer|The question was deleted|My storage is unavailable\. I'll do this|I couldn't save this)/;

/** Describes each question and message whose final state is wrong. */
export function judge(remains: Remains): Complaint[] {
  return [
    ...judgeQuestions(remains),
    ...judgeMessages(remains),
    ...remains.turns.flatMap((turn) => judgeTurn(turn, remains)),
    ...judgeActs(remains),
  ];
}

function judgeQuestions({ questions, removed, turns, delivered }: Remains): Complaint[] {
  return questions.flatMap(({ id, name }): Complaint[] => {
    const count = turns.filter(({ messageIds }) => messageIds.includes(id)).length;
    if (count > 1) return [{ fault: "doubled", sentence: `${count} turns answered ${name}.` }];
    if (count === 1 || removed.has(id) || !delivered.has(id)) return [];
    return [{ fault: "lost", sentence: `${name} has no answer.` }];
  });
}

function judgeMessages({ shown, turns }: Remains): Complaint[] {
  return shown.flatMap(({ id, text, isGrowing, buttons }): Complaint[] => {
    const owners = turns.filter(({ posted }) => posted.includes(id)).length;
    const words = text.slice(0, 60);
    const isStuck = isGrowing || buttons.some(({ label }) => label === "Stop");
    return [
      ...(owners === 1
        ? []
        : [{ ...complain("doubled", `A message belongs to ${owners} turns: ${words}`), messageId: id }]),
      ...(isStuck ? [{ ...complain("stuck", `A message still grows: ${words}`), messageId: id }] : []),
    ];
  });
}

function judgeTurn(turn: TurnRecord, remains: Remains): Complaint[] {
  const { questions, removed, shown, deletedAnswers } = remains;
  const isDeleted = turn.posted.some((id) => deletedAnswers.has(id));
  const own = questions.filter(({ id }) => turn.messageIds.includes(id));
  const who = own.map(({ name }) => name).join(" ") || `turn ${turn.id}`;
  if (turn.phase !== "final" && !isDeleted) {
    const { attempts, seen, ends, shownText } = turn;
    const how = JSON.stringify({ attempts, seen, ends, shownText: shownText?.length });
    return [complain("stuck", `${who} is still ${turn.phase}: ${how}.`)];
  }
  // If people deleted a message of the answer, its turn can have any final phase.
  if (isDeleted || own.length === 0) return [];
  const messages = turn.posted.flatMap((id) => shown.find((message) => message.id === id) ?? []);
  if (messages.length < turn.posted.length) return [complain("lost", `${who}: the answer has lost a message.`)];
  if (messages.some(({ text }) => GIVEN_UP.test(text)) && !remains.canGiveUp(turn))
    return [complain("wrong", `The bot gave ${who} up too early.`)];
  // A deleted question needs no answer.
  if (messages.length === 0 && own.every(({ id }) => removed.has(id))) return [];
  if (messages.length === 0) return [complain("lost", `${who} has no message.`)];
  return judgeEnding(
    own.map(({ name }) => name),
    messages,
    remains,
  );
}

function judgeEnding(own: readonly string[], messages: readonly Shown[], { requestsFor }: Remains): Complaint[] {
  const who = own.join(" ");
  const shown = messages.map((message) => message.text).join("\n");
  const text = withoutWarnings(shown);
  const [note] = NOTE.exec(text) ?? [];
  const body = text.slice(0, text.length - (note?.length ?? 0));
  const names = namesIn(body.slice(0, body.indexOf(".") + 1));
  const requests = own.flatMap(requestsFor).toSorted((a, b) => a.atMs - b.atMs);
  const whole = squeeze(answerTo(names));
  const last = names.at(-1);
  if (last !== undefined && !own.includes(unedited(last))) return [complain("wrong", `${who}: answers ${last}.`)];
  // The answer to a deleted question can be unfinished if the answer says so.
  const isMarkedPart = QUESTION_GONE.exec(shown)?.[1] !== undefined;
  if (isMarkedPart && whole.startsWith(squeeze(body))) return [];
  if (note === undefined) {
    if (names.length === 0 || squeeze(body) !== whole) {
      return [
        complain(
          "wrong",
          `${who}: neither complete nor marked as is not the start of the answer, ${describe(body, whole)}`,
        ),
      ];
    }
    return requests.some(({ isComplete }) => isComplete)
      ? []
      : [complain("wrong", `${who}: looks complete, but the upstream never sent a complete answer.`)];
  }
  const labels = messages.flatMap(({ buttons }) => buttons.map(({ label }) => label));
  const hasOffer = labels.some((label) => label === "Retry" || label === "Continue");
  // An answer that was interrupted in its first words does not name its question yet.
  const isBeginning =
    names.length === 0 ? "Answerto".startsWith(squeeze(body).slice(0, 8)) : whole.startsWith(squeeze(body));
  return [
    ...(hasOffer ? [] : [complain("wrong", `${who}: offers no Retry or Continue after ${note.trim()}`)]),
    ...(isBeginning ? [] : [complain("wrong", `${who}: is not the start of the answer, ${describe(body, whole)}`)]),
    ...judgeNote(who, note.trim(), requests),
  ];
}

/** Returns the note if it has no cause because the answer above it is complete. */
function judgeNote(who: string, note: string, requests: readonly UpstreamRequest[]): Complaint[] {
  // This note is right: the processes died before they could use the responses to their requests.
  if (GIVEN_UP.test(note)) return [];
  const last = requests.at(-1);
  if (
    last?.isComplete !== true ||
    /^_(?:Stopped|You stopped|`[^`\n]*` stopped this answer|This answer was stopped|I was shut down|I couldn't check your limits)/.test(
      note,
    )
  )
    return [];
  return [complain("wrong", `${who}: ends with ${note} although the upstream sent the whole answer.`)];
}

/**
 * Finds questions for which a tool acted twice. The bot must not repeat a call that may have acted, and must say in the
 * answer that it does not know.
 */
function judgeActs({ questions, acts }: Remains): Complaint[] {
  return questions.flatMap(({ name }) => {
    const count = acts.filter((act) => act === name).length;
    return count > 1 ? [complain("acted twice", `${name}: a tool acted ${count} times.`)] : [];
  });
}

function complain(fault: Fault, sentence: string): Complaint {
  return { fault, sentence };
}

function describe(body: string, whole: string): string {
  const text = squeeze(body);
  let at = 0;
  while (at < text.length && text[at] === whole[at]) at += 1;
  const position = `at ${at} of ${whole.length} characters`;
  return `${position} it says "${text.slice(at, at + 30)}", not "${whole.slice(at, at + 30)}" (${text.length} in all)`;
}
