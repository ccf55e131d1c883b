import type { AssistantMessage, ChatMessage } from "../gateway/chunks.ts";
import type { OnText } from "../reply/reply.ts";

/** Begins the request to go on with an answer; its last words follow. */
const GO_ON =
  "Your answer was cut off. Go on exactly where it stopped: begin with its last words as they stand below, then write the rest, and nothing else.";
/** In UTF-16 units. A model repeats this much before people see more. */
const LAST_CHARS = 32;
/** Some models say a word of their own first, or open code again that was open. */
const MAX_PREFACE_CHARS = 40;

/** True for a text longer than its last words by more than `MAX_PREFACE_CHARS`, which its beginning does not hold too. */
function isContinuable(said: string): boolean {
  const beginning = said.trim();
  return readRest(beginning, toLastWords(beginning)) === undefined;
}

/** A request to the model, and its answer as far as it has come. */
export interface Asked {
  messages: ChatMessage[];
  answer: AssistantMessage;
}

/** Asks the model; the answer comes into what is asked, also where it breaks off. */
type Ask<A> = (asked: A, onText: OnText, signal: AbortSignal) => Promise<void>;

/**
 * Asks for the rest of an answer of which an earlier process has shown `said`. Where the model repeats its last words,
 * the rest is joined to them; else it answers anew, and nothing is handed over before that text is longer than `said`.
 * Resolves to what the next answer has to go on with, where this one only calls tools. What was not handed over is not
 * in the answer.
 */
export async function goOn<A extends Asked>(
  asked: A,
  said: string,
  ask: Ask<A>,
  onText: OnText,
  signal: AbortSignal,
): Promise<string | undefined> {
  const way = isContinuable(said) ? await askForRest(asked, said.trimEnd(), ask, onText, signal) : "elsewhere";
  if (way === "elsewhere") await askAnew(asked, said, ask, onText, signal);
  return way === "calls" ? said : undefined;
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
    // As if one request had brought all of it.
    if (isJoined) answer.content = beginning + readRest(answer.content, lastWords);
    if (isJoined || heard === "") Object.assign(asked, further, { messages });
  }
  if (isJoined) return "joined";
  return heard === "" && asked.answer.tool_calls !== undefined ? "calls" : "elsewhere";
}

async function askAnew<A extends Asked>(
  asked: A,
  said: string,
  ask: Ask<A>,
  onText: OnText,
  signal: AbortSignal,
): Promise<void> {
  const { answer } = asked;
  let held: string | undefined = "";
  const onMore = (text: string) => {
    if (held === undefined) return onText(text);
    held += text;
    if (held.length <= said.length) return;
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

/** The end of a text from the beginning of a word, where it has words. */
function toLastWords(text: string): string {
  const end = text.slice(-LAST_CHARS);
  const word = /\s\S/.exec(end.slice(0, LAST_CHARS / 2));
  // Half of a surrogate pair is no beginning.
  return word === null ? end.replace(/^[\uDC00-\uDFFF]/, "") : end.slice(word.index + 1);
}

/** The text after the last words; undefined if they have not come, or come too late. */
function readRest(text: string, lastWords: string): string | undefined {
  const begun = text.trimStart();
  const at = begun.indexOf(lastWords);
  return at < 0 || at > MAX_PREFACE_CHARS ? undefined : begun.slice(at + lastWords.length);
}
