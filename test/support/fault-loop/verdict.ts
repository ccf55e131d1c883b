import type { TurnRecord } from "../../../src/turn/record.ts";
import { findTakenBack, toSaidLetters } from "../taken-back.ts";
import { answerTo, namesIn, squeeze, unedited } from "./answers.ts";
import type { Asked } from "./upstream.ts";
import { COMPLETE, RETRY_AFTER_MS } from "./upstream-faults.ts";
import type { Break, Question, Shown } from "./world.ts";

export type Fault = "lost" | "doubled" | "stuck" | "wrong" | "taken back" | "acted twice";

export interface Complaint {
  fault: Fault;
  sentence: string;
  /** The message that it is about. */
  messageId?: string;
}

/** Left behind by a round, with what of it is excused. */
export interface Remains {
  questions: readonly Question[];
  /** Ids of questions that people took back. */
  removed: ReadonlySet<string>;
  turns: readonly TurnRecord[];
  shown: readonly Shown[];
  /** Ids of questions that the service took over. */
  heard: ReadonlySet<string>;
  /** Ids of messages of the bot that people took away. */
  takenAway: ReadonlySet<string>;
  /** Ids of questions whose answer people had begin anew. */
  begunAnew: ReadonlySet<string>;
  /** Whether so many processes died of a turn that it may be given up; absent: of none. */
  mayGiveUp?(turn: TurnRecord): boolean;
  /** The bot lost its place, or the right to write there. */
  isDisturbed: boolean;
  wasKilled: boolean;
  /** Calls were slow, so that one of a process that was killed may be carried out after those of the next. */
  hadSlowCalls: boolean;
  breaks: readonly Break[];
  /** Names of questions for whose answer a tool acted, once for each time that it did. */
  acts: readonly string[];
  asked(name: string): readonly Asked[];
}

/** How a turn that did not end with a complete answer says so. */
const NOTE =
  /(?:^|\n)_(?:I tried several times|Stopped|You stopped|`[^`\n]*` stopped this answer|This answer was stopped|The answer (?:hit|took|was cut|broke off)|A (?:content )?filter|The model (?:kept|hit|gave an empty)|The AI service|I can't reach|This (?:bot's account|conversation, with|channel accepts no more)|The bot (?:was|could)|Something went wrong|Not answered: I cannot look up the limits)[^\n]*_\s*$/;

/** Stands at the end of an answer whose processes died again and again. */
const GIVEN_UP = /^_I tried several times [^\n]*_/m;

/** Stands in the place of an answer for which no room could be reserved. */
export const UNRESERVED = /^_Not answered: I cannot look up the limits[^\n]*_/m;

/** Stands under an answer whose conversation could not be read, which is otherwise as it should be. */
export const AMNESIA = /\s*_My memory is out of reach right now: [^\n]*_/;
/** Stands under an answer whose thread could not be read, or not to its end. */
const UNREAD = /\s*_I could (?:not read|read only a part of) what was said here before\._/;
/** Stands under an answer that was there when its question was deleted. */
const QUESTION_GONE = /\s*_The question was deleted\.( This answer is not whole\.)?_/;
/** Stands under an answer whose tool may have acted: nobody saw the end of its call. */
export const UNKNOWN_CALL = /\s*_It is not known whether [^\n]*_/;

/** The answer's part of a message, without the sentences under it: those change with what becomes of the answer. */
export function withoutNotes(text: string): string {
  return withoutWarnings(text).replace(NOTE, "");
}

/** What people could read of an answer in a message and then no longer, in words; empty where it only grew. */
export function findShrinks({ states }: Shown): string[] {
  return findTakenBack(states.map(withoutNotes));
}

/** True for an answer that people had begin anew: by an edit or Retry, or by taking back one of several questions. */
export function isBegunAnew(
  {
    begunAnew,
    questions,
    removed,
    shown,
    asked,
  }: Pick<Remains, "begunAnew" | "questions" | "removed" | "shown" | "asked">,
  { messageIds, posted }: TurnRecord,
): boolean {
  if (messageIds.some((id) => begunAnew.has(id))) return true;
  if (messageIds.length > 1 && messageIds.some((id) => removed.has(id))) return true;
  // A question may have left its turn when it was taken back. The text of before names it, or just begins to: then the
  // upstream was asked about it together with others.
  const own = questions.filter(({ id }) => messageIds.includes(id)).map(({ name }) => name);
  const states = shown.filter(({ id }) => posted.includes(id)).flatMap((message) => message.states);
  const named = new Set(states.flatMap(namesIn).map(unedited));
  return questions.some(({ id, name }) => {
    if (!removed.has(id) || messageIds.includes(id)) return false;
    const requests = [name, ...own].flatMap(asked).map(({ names }) => names.map(unedited));
    return named.has(name) || requests.some((about) => about.includes(name) && about.some((one) => own.includes(one)));
  });
}

/** Whether a message says that its answer did not come to its end. */
export function hasNote(text: string): boolean {
  return NOTE.test(withoutWarnings(text));
}

function withoutWarnings(text: string): string {
  return [AMNESIA, UNREAD, QUESTION_GONE, UNKNOWN_CALL].reduce((rest, warning) => rest.replace(warning, ""), text);
}

/** What the bot says to whoever pressed a button or gave a command; no answer, though everybody may see it. */
export const NOTICE =
  /^(?:This answer (?:has ended already|is too old)|Only the person who asked|I cannot write to this answer|The question was deleted|My memory is out of reach right now\. I will do this|I could not store this)/;

/** Rules that a process cannot keep which does not know what the one before it did, or that was forbidden to write. */
const EXCUSED_BY_KILL = new Set(["late-acknowledgement", "rate-limited", "early-retry", "late-ack"]);
const EXCUSED_BY_LATE_CALLS = new Set(["backwards", "stale-edit"]);
const EXCUSED_BY_DISTURBANCE = new Set(["invalid-request"]);

/** Says of every question what is wrong with how it ended; empty when all is well. */
export function judge(remains: Remains): Complaint[] {
  return [
    ...judgeQuestions(remains),
    ...judgeMessages(remains),
    ...remains.turns.flatMap((turn) => judgeTurn(turn, remains)),
    ...judgeGrowth(remains),
    ...judgeBreaks(remains),
    ...judgeWaits(remains),
    ...judgeActs(remains),
  ];
}

function judgeQuestions({ questions, removed, turns, heard, isDisturbed }: Remains): Complaint[] {
  return questions.flatMap(({ id, name, isTold }): Complaint[] => {
    const count = turns.filter(({ messageIds }) => messageIds.includes(id)).length;
    if (count > 1) return [{ fault: "doubled", sentence: `${name} was answered in ${count} turns.` }];
    if (count === 1 || removed.has(id)) return [];
    // Words said while the bot sees nothing are never told.
    if (!heard.has(id) && (!isTold || isDisturbed)) return [];
    return [{ fault: "lost", sentence: `${name} was never answered.` }];
  });
}

function judgeMessages({ shown, turns, isDisturbed }: Remains): Complaint[] {
  return shown.flatMap(({ id, text, isGrowing, buttons }): Complaint[] => {
    const owners = turns.filter(({ posted }) => posted.includes(id)).length;
    const words = text.slice(0, 60);
    // The bot cannot bring to an end what it may not see.
    const isStuck = !isDisturbed && (isGrowing || buttons.some(({ label }) => label === "Stop"));
    return [
      ...(owners === 1
        ? []
        : [{ ...complain("doubled", `a message belongs to ${owners} turns: ${words}`), messageId: id }]),
      ...(isStuck ? [{ ...complain("stuck", `a message still grows: ${words}`), messageId: id }] : []),
    ];
  });
}

function judgeTurn(turn: TurnRecord, remains: Remains): Complaint[] {
  const { questions, removed, shown, takenAway } = remains;
  const isDisturbed = remains.isDisturbed || turn.posted.some((id) => takenAway.has(id));
  const own = questions.filter(({ id }) => turn.messageIds.includes(id));
  const who = own.map(({ name }) => name).join(" ") || `turn ${turn.id}`;
  if (turn.phase !== "final" && !isDisturbed) {
    const { attempts, seen, ends, said } = turn;
    const how = JSON.stringify({ attempts, seen, ends, said: said?.length });
    return [complain("stuck", `${who} is still ${turn.phase}: ${how}.`)];
  }
  // A place that is gone, or a message that people took away, ends the turn wherever it stood.
  if (isDisturbed || own.length === 0) return [];
  const messages = turn.posted.flatMap((id) => shown.find((message) => message.id === id) ?? []);
  if (messages.length < turn.posted.length) return [complain("lost", `${who}: a message of the answer is gone.`)];
  if (messages.some(({ text }) => GIVEN_UP.test(text)) && remains.mayGiveUp?.(turn) !== true)
    return [complain("wrong", `${who} was given up.`)];
  // Nobody waits for an answer to what was taken back.
  if (messages.length === 0 && own.every(({ id }) => removed.has(id))) return [];
  if (messages.length === 0) return [complain("lost", `${who} has no message.`)];
  return judgeEnding(
    own.map(({ name }) => name),
    messages,
    remains,
  );
}

function judgeEnding(own: readonly string[], messages: readonly Shown[], { asked }: Remains): Complaint[] {
  const who = own.join(" ");
  const shown = messages.map((message) => message.text).join("\n");
  const text = withoutWarnings(shown);
  const [note] = NOTE.exec(text) ?? [];
  const said = text.slice(0, text.length - (note?.length ?? 0));
  const names = namesIn(said.slice(0, said.indexOf(".") + 1));
  const requests = own.flatMap(asked).toSorted((a, b) => a.atMs - b.atMs);
  const whole = squeeze(answerTo(names));
  const last = names.at(-1);
  if (last !== undefined && !own.includes(unedited(last))) return [complain("wrong", `${who}: answers ${last}.`)];
  // Nobody waits for the rest, but everybody can see that there was to be one.
  const isMarkedPart = QUESTION_GONE.exec(shown)?.[1] !== undefined;
  if (isMarkedPart && whole.startsWith(squeeze(said))) return [];
  if (note === undefined) {
    if (names.length === 0 || squeeze(said) !== whole) {
      return [complain("wrong", `${who}: neither whole nor marked, ${describe(said, whole)}`)];
    }
    return requests.some(({ isComplete }) => isComplete)
      ? []
      : [complain("wrong", `${who}: looks complete, though the upstream never said so.`)];
  }
  const labels = messages.flatMap(({ buttons }) => buttons.map(({ label }) => label));
  const offers = labels.some((label) => label === "Retry" || label === "Continue");
  // Of an answer that broke off in its first words not even the question is known.
  const isBeginning =
    names.length === 0 ? "Answerto".startsWith(squeeze(said).slice(0, 8)) : whole.startsWith(squeeze(said));
  return [
    ...(offers ? [] : [complain("wrong", `${who}: offers no way on after ${note.trim()}`)]),
    ...(isBeginning ? [] : [complain("wrong", `${who}: partial, ${describe(said, whole)}`)]),
    ...judgeNote(who, note.trim(), requests),
  ];
}

/** A note that nothing has called for hides an answer that was there. */
function judgeNote(who: string, note: string, requests: readonly Asked[]): Complaint[] {
  // What came of the requests died with those who made them.
  if (GIVEN_UP.test(note)) return [];
  const last = requests.at(-1);
  if (
    last?.isComplete !== true ||
    /^_(?:Stopped|You stopped|`[^`\n]*` stopped this answer|This answer was stopped|The bot was shut down|Not answered: I cannot look up)/.test(
      note,
    )
  )
    return [];
  return [complain("wrong", `${who}: ends with ${note} though the upstream said it all.`)];
}

/** A growing answer takes nothing back that people could read. */
function judgeGrowth(remains: Remains): Complaint[] {
  const { questions, shown, turns, wasKilled, hadSlowCalls, asked } = remains;
  if (wasKilled && hadSlowCalls) return [];
  return turns.flatMap((turn) => {
    // People who edit or take back a question, or ask again, want another text.
    if (isBegunAnew(remains, turn)) return [];
    const requests = questions.filter(({ id }) => turn.messageIds.includes(id)).flatMap(({ name }) => asked(name));
    // A process that is killed behind an answer that broke off asks again, and what broke off goes on.
    if (wasKilled && requests.slice(0, -1).some(({ way }) => !COMPLETE.has(way))) return [];
    return shown
      .filter((message) => turn.posted.includes(message.id) && !(wasKilled && keepsBeginning(message)))
      .flatMap(findShrinks)
      .map((what) => complain("taken back", `turn ${turn.id}: ${what}`));
  });
}

/**
 * True where the text that a message showed first stayed in it. A process notes that, and the rest of a text now and
 * then: an answer that ends after a kill, before it went on, may lack what came between.
 */
function keepsBeginning({ states }: Shown): boolean {
  const texts = states.flatMap((state) => toSaidLetters(withoutNotes(state)) ?? []);
  const begun = texts.slice(texts.findIndex((text) => text !== ""));
  return begun.every((text) => text.startsWith(begun[0] ?? ""));
}

function judgeBreaks(remains: Remains): Complaint[] {
  const { breaks, wasKilled, hadSlowCalls, isDisturbed, turns, begunAnew } = remains;
  return breaks.flatMap(({ kind, sentence, messageId = "", isNotice = false }): Complaint[] => {
    const turn = turns.find(({ posted }) => posted.includes(messageId));
    // Another attempt may say less than the one before it had said.
    const isAnew = turn?.messageIds.some((id) => begunAnew.has(id)) === true;
    // The end of a full message moves to the next one.
    if (kind === "stale-edit" && (isAnew || turn?.posted.at(-1) !== messageId)) return [];
    if (wasKilled && (EXCUSED_BY_KILL.has(kind) || isNotice)) return [];
    if (wasKilled && hadSlowCalls && EXCUSED_BY_LATE_CALLS.has(kind)) return [];
    if (isDisturbed && EXCUSED_BY_DISTURBANCE.has(kind)) return [];
    return [complain(kind === "double-post" ? "doubled" : "wrong", `${kind}: ${sentence}`)];
  });
}

/** A process that was killed does not know what wait it was told. */
function judgeWaits({ questions, asked, wasKilled }: Remains): Complaint[] {
  if (wasKilled) return [];
  return questions.flatMap(({ name }) => {
    const requests = asked(name);
    return requests.flatMap(({ way, atMs }, index): Complaint[] => {
      const next = requests[index + 1];
      if (way !== "rate-limited" || next === undefined || next.atMs - atMs >= RETRY_AFTER_MS) return [];
      return [complain("wrong", `${name}: asked again ${next.atMs - atMs} ms after it was told to wait.`)];
    });
  });
}

/** What may have been done is not done again by itself: its answer says that nobody knows. */
function judgeActs({ questions, acts }: Remains): Complaint[] {
  return questions.flatMap(({ name }) => {
    const count = acts.filter((act) => act === name).length;
    return count > 1 ? [complain("acted twice", `${name}: a tool acted ${count} times.`)] : [];
  });
}

function complain(fault: Fault, sentence: string): Complaint {
  return { fault, sentence };
}

function describe(said: string, whole: string): string {
  const text = squeeze(said);
  let at = 0;
  while (at < text.length && text[at] === whole[at]) at += 1;
  const place = `at ${at} of ${whole.length} characters`;
  return `${place} it says "${text.slice(at, at + 30)}", not "${whole.slice(at, at + 30)}" (${text.length} in all)`;
}
