import type { ChatMessage } from "../gateway/chunks.ts";
import type { OnText } from "../reply/reply.ts";
import type { TurnLedger } from "../tools/ledger.ts";
import { runTurn, type TurnDeps } from "./turn.ts";

/** Begins the request to go on with an answer; its last words follow. */
const GO_ON =
  "Your answer was cut off. Go on exactly where it stopped: begin with its last words as they stand below, then write the rest, and nothing else.";
/** In UTF-16 units. A model writes so much again before people see more. */
const LAST_CHARS = 32;
/** An answer that is shorter is as soon begun anew. */
const MIN_CHARS = 2 * LAST_CHARS;
/** Some models say a word of their own first, or open code again that was open. */
const MAX_PREFACE_CHARS = 40;

/** True for a text that can be continued: its first words must differ from its last, which tell the two apart. */
export function isContinuable(said: string): boolean {
  const beginning = said.trim();
  return beginning.length >= MIN_CHARS && readRest(beginning, toLastWords(beginning)) === undefined;
}

/**
 * Continues an answer that another run has begun to show, handing over its text first. The model repeats the last
 * words, which joins the two. Undefined, with nothing handed over, if it does not.
 */
export async function goOn(
  messages: ChatMessage[],
  said: string,
  deps: TurnDeps,
  onText: OnText,
  signal: AbortSignal,
): Promise<string | undefined> {
  const beginning = said.trimEnd();
  const lastWords = toLastWords(beginning);
  const asked: ChatMessage[] = [
    ...messages,
    { role: "assistant", content: beginning },
    { role: "user", content: `${GO_ON}\n\n${lastWords}` },
  ];
  const askedCount = asked.length;
  const elsewhere = new AbortController();
  const ledger: TurnLedger = {
    ...deps.ledger,
    // Whoever takes its calls up has the text before them whole.
    plan(round) {
      const rest = deps.ledger.rounds.length === 0 ? readRest(round.content, lastWords) : undefined;
      return deps.ledger.plan(rest === undefined ? round : Object.assign(round, { content: beginning + rest }));
    },
  };
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
    const finish = await runTurn(asked, { ...deps, ledger }, onMore, AbortSignal.any([signal, elsewhere.signal]));
    return isJoined ? finish : undefined;
  } catch (error) {
    if (!elsewhere.signal.aborted || signal.aborted) throw error;
    return undefined;
  } finally {
    if (isJoined) messages.push(...join(asked.slice(askedCount), beginning, lastWords));
  }
}

/** The end of a text from the beginning of a word, where it has words. */
function toLastWords(text: string): string {
  const end = text.slice(-LAST_CHARS);
  const word = /\s\S/.exec(end.slice(0, LAST_CHARS / 2));
  // Half of a surrogate pair is no beginning.
  return word === null ? end.replace(/^[\uDC00-\uDFFF]/, "") : end.slice(word.index + 1);
}

/** The text behind the last words; undefined if they have not come, or come too late. */
function readRest(text: string, lastWords: string): string | undefined {
  const begun = text.trimStart();
  const at = begun.indexOf(lastWords);
  return at < 0 || at > MAX_PREFACE_CHARS ? undefined : begun.slice(at + lastWords.length);
}

/** The messages added by the turn, as if one run had written all of them. */
function join(added: readonly ChatMessage[], beginning: string, lastWords: string): ChatMessage[] {
  let isJoined = false;
  return added.map((message) => {
    const rest = message.role === "assistant" && !isJoined ? readRest(message.content, lastWords) : undefined;
    if (message.role !== "assistant" || rest === undefined) return message;
    isJoined = true;
    return { ...message, content: beginning + rest };
  });
}
