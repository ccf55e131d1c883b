import { isAborted } from "../concurrency/abort.ts";
import type { AssistantMessage, ChatMessage } from "../gateway/chunks.ts";
import type { OnText } from "../reply/reply.ts";
import type { AnswerOptions } from "../settings/answer-options.ts";
import type { Source } from "../text/sources.ts";
import { type TurnLedger, toShown } from "../tools/ledger.ts";
import type { TurnRecord } from "./record.ts";
import type { TurnServices } from "./records.ts";

/** The state that is assumed for an earlier attempt whose record cannot be read: it may have posted messages. */
const BEGUN_UNNOTED: Partial<TurnRecord> = { attempts: 1, isPosting: true };

/**
 * Loads the record of an earlier attempt. Resolves to undefined if there was no attempt. Rejects only if the turn
 * cannot start without the record.
 */
export async function loadEarlierAttempt(
  { records, right, log }: TurnServices,
  id: string,
  isAsked: boolean,
): Promise<Partial<TurnRecord> | undefined> {
  try {
    // Reads twice, because an answer that starts without the record could have less text than people have read.
    const record = await records.load(id).catch(() => records.load(id));
    return record ?? (right.isResumed ? BEGUN_UNNOTED : undefined);
  } catch (error) {
    // Only the record says how much text the earlier process showed.
    if (!isAsked || right.isResumed) throw error;
    log.error({ err: error, turnId: id }, "the record of a turn could not be read");
    return BEGUN_UNNOTED;
  }
}

/** Counts the end of an earlier attempt, because its process may have died before it counted that end. */
export async function countEarlierEnd({ watch, log }: TurnServices, record: Partial<TurnRecord>): Promise<void> {
  const { id, conversationId, reply, author, ends = [], posted = [], phase, trace } = record;
  const outcome = ends.at(-1);
  if (phase !== "final" || outcome === undefined || !id || !conversationId || !reply || !author) return;
  try {
    const { at = Date.now(), model = "", calls = [], tokens } = trace ?? {};
    const used = {
      promptTokens: tokens?.prompt ?? 0,
      completionTokens: tokens?.completion ?? 0,
      estimatedTokens: tokens?.estimated ?? 0,
    };
    const end = { number: ends.length, at, outcome, messages: posted.length, used, calls };
    await watch.makeUp({ turnId: id, conversationId, reply, author, model, ...end });
  } catch (err) {
    log.warn({ err, turnId: id }, "the end of a turn could not be counted");
  }
}

interface ShownText {
  text: string;
  cited: Source[];
}

/**
 * Writes the model's text into the record, for a process that takes the turn over. That process continues the text. If
 * the text `isWhole`, the process only shows it.
 */
export function noteShownText(
  record: TurnRecord,
  { text: shownText, cited }: ShownText,
  isWhole: boolean,
  { format, thinking }: AnswerOptions,
): void {
  forgetShownText(record);
  if (format === "json" || thinking === "shown") return;
  Object.assign(record, { shownText, isShownWhole: isWhole, ...(cited.length > 0 && { cited }) });
}

/**
 * Writes the text into the record during a shutdown, because the last note can lack the end of the text. Returns true
 * if the caller must store this text.
 */
export function noteHandOver(
  record: TurnRecord,
  shown: ShownText,
  signal: AbortSignal,
  options: AnswerOptions,
): boolean {
  if (shown.text === "" || !isAborted(signal, "shutdown")) return false;
  record.seen = Math.min(record.seen, shown.text.length);
  noteShownText(record, shown, false, options);
  return true;
}

export function forgetShownText(record: TurnRecord): void {
  delete record.shownText;
  delete record.isShownWhole;
  delete record.cited;
}

/** The part of the shown text that follows the rounds in the ledger. Undefined if nothing follows them. */
export function readBegun({ shownText = "" }: TurnRecord, ledger: TurnLedger): string | undefined {
  const before = ledger.rounds.map((round) => toShown(round) && `${toShown(round)}\n\n`).join("");
  return shownText.startsWith(before) && shownText.length > before.length ? shownText.slice(before.length) : undefined;
}

/** Asks the model for the rest of an answer. The last words of the answer follow this sentence. */
const GO_ON =
  "Your answer was cut off. Go on exactly where it stopped: begin with its last words, exactly as quoted below, then write the rest, and nothing else.";

/** The length of the last words, in UTF-16 units. The model must repeat them before people see new text. */
const LAST_CHARS = 32;

/** How much text can come before the repeated words. Some models start with a preface, or open a code block again. */
const MAX_PREFACE_CHARS = 40;

/** False if the text is so short that a new answer could look like its continuation. */
function isContinuable(shownText: string): boolean {
  const beginning = shownText.trim();
  return readRest(beginning, toLastWords(beginning)) === undefined;
}

/** A request to the model, with the part of the answer that has arrived. */
export interface Asked {
  messages: ChatMessage[];
  answer: AssistantMessage;
}

/** Asks the model and collects the answer in `asked`. If the answer breaks off, `asked` has the part that arrived. */
type Ask<A> = (asked: A, onText: OnText, signal: AbortSignal) => Promise<void>;

/**
 * Requests the rest of an answer. People have read `shownText`. If the model repeats the last words, joins its
 * text to them. Otherwise asks for a whole new answer, and holds it back until it is longer than `shownText`. If the
 * model only calls tools, resolves to the text that the next answer must continue.
 */
export async function goOn<A extends Asked>(
  asked: A,
  shownText: string,
  ask: Ask<A>,
  onText: OnText,
  signal: AbortSignal,
): Promise<string | undefined> {
  const way = isContinuable(shownText)
    ? await askForRest(asked, shownText.trimEnd(), ask, onText, signal)
    : "elsewhere";
  if (way === "elsewhere") await askAnew(asked, shownText, ask, onText, signal);
  return way === "calls" ? shownText : undefined;
}

async function askForRest<A extends Asked>(
  asked: A,
  beginning: string,
  ask: Ask<A>,
  onText: OnText,
  signal: AbortSignal,
): Promise<"joined" | "calls" | "elsewhere"> {
  const { messages } = asked;
  const lastWords = toLastWords(beginning);
  const request: ChatMessage[] = [
    { role: "assistant", content: beginning },
    { role: "user", content: `${GO_ON}\n\n${lastWords}` },
  ];
  const further: A = { ...asked, messages: [...messages, ...request] };
  const elsewhere = new AbortController();
  let heard = "";
  let isJoined = false;
  const onMore = (text: string) => {
    if (isJoined) return onText(text);
    heard += text;
    const rest = readRest(heard, lastWords);
    if (rest !== undefined) {
      isJoined = true;
      onText(beginning + rest);
    } else if (heard.trimStart().length > MAX_PREFACE_CHARS + lastWords.length) elsewhere.abort();
  };
  try {
    await ask(further, onMore, AbortSignal.any([signal, elsewhere.signal]));
  } catch (error) {
    if (!elsewhere.signal.aborted || signal.aborted) throw error;
    return "elsewhere";
  } finally {
    const { answer } = further;
    if (isJoined) answer.content = beginning + readRest(answer.content, lastWords);
    if (isJoined || heard === "") Object.assign(asked, further, { messages });
  }
  if (isJoined) return "joined";
  return heard === "" && asked.answer.tool_calls !== undefined ? "calls" : "elsewhere";
}

async function askAnew<A extends Asked>(
  asked: A,
  shownText: string,
  ask: Ask<A>,
  onText: OnText,
  signal: AbortSignal,
): Promise<void> {
  const { answer } = asked;
  let held: string | undefined = "";
  const onMore = (text: string) => {
    if (held === undefined) return onText(text);
    held += text;
    if (held.length <= shownText.length) return;
    onText(held);
    held = undefined;
  };
  try {
    await ask(asked, onMore, signal);
  } catch (error) {
    if (held !== undefined) asked.answer = answer;
    throw error;
  }
  if (held) onText(held);
}

/** Returns the end of a text. It starts at a word if possible. */
function toLastWords(text: string): string {
  const end = text.slice(-LAST_CHARS);
  const word = /\s\S/.exec(end.slice(0, LAST_CHARS / 2));
  // Removes half of a surrogate pair at the start.
  return word === null ? end.replace(/^[\uDC00-\uDFFF]/, "") : end.slice(word.index + 1);
}

/** Returns the text after the last words. Undefined if the words are missing or come too late. */
function readRest(text: string, lastWords: string): string | undefined {
  const begun = text.trimStart();
  const at = begun.indexOf(lastWords);
  return at < 0 || at > MAX_PREFACE_CHARS ? undefined : begun.slice(at + lastWords.length);
}

/** Adds the rest of the text that people have read, if the model has not repeated all of it. */
export function repeatShownText(messages: ChatMessage[], shownText: string, emitted: string, onText: OnText): void {
  const rest = shownText.startsWith(emitted) ? shownText.slice(emitted.length) : "";
  if (rest.trim() === "") return;
  messages.push({ role: "assistant", content: rest.trimStart() });
  onText(rest);
}
