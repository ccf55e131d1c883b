import { isDeceptive, namesHost } from "../../../src/text/links.ts";

/** Finds where the words of a link may end, or a link in Slack's own writing may begin. */
const PLACE = /\](?=[([:]|$)|<(?=(?:https?|mailto):|[a-z]{0,6}$)/gi;
/** Reads the address behind the words, complete or as far as it has come. */
const TARGET = /^\(\s{0,20}(?:<(?<angle>[^<>\n]*)(?<angleEnd>[<>\n])?|(?<bare>[^\s)<][^\s)]*)?(?<bareEnd>[\s)])?)/;
const OWN = /^<(?<target>[^<>|\n]*)(?:\|(?<words>[^<>\n]*)(?=[<>\n])|(?<bare>[<>\n]))?/;
/** Longest words, and longest address, that are looked at. */
const MAX_WORDS_CHARS = 600;
const MAX_TARGET_CHARS = 2_000;
const CODE = /(?<!`)(`+)(?!`)[^\n]*?(?<!`)\1(?!`)/g;
/** Not shown, inside the words of another link. */
const INNER_TARGET = /\]\([^\s()]*\)/g;
const ESCAPE = /(?<!\\)(?:\\\\)*\\$/;

export interface LinkFindings {
  /** Indices at which a gap keeps a link from being one. A longer text has the same ones, and more. */
  deceptive: number[];
  /** The first place of which only what follows will tell. */
  undecidedAt: number | undefined;
}

/**
 * Finds the links whose words name one address and that lead to another. Looks into code too, because readers of
 * Markdown disagree on where code ends.
 */
export function findDeceptiveLinks(text: string): LinkFindings {
  const deceptive: number[] = [];
  let undecidedAt: number | undefined;
  for (const { 0: sign, index } of text.matchAll(PLACE)) {
    const verdict = sign === "<" ? judgeOwn(text, index) : judgeLink(text, index);
    if (verdict === "undecided") undecidedAt ??= index;
    if (verdict === "deceptive") deceptive.push(index + 1);
  }
  return { deceptive, undecidedAt };
}

type LinkVerdict = "deceptive" | "honest" | "undecided";

/** `at` is the bracket behind the words. */
function judgeLink(text: string, at: number): LinkVerdict {
  const { words, isEndless } = findWords(text, at);
  const suspicious = words.filter(namesHost);
  if (suspicious.length === 0 && !isEndless) return "honest";
  const next = text[at + 1];
  if (next === undefined) return "undecided";
  // The address stands elsewhere, or is the one of words that do.
  if (next !== "(") return suspicious.length > 0 ? "deceptive" : "honest";
  const reach = text.slice(at + 1, at + 1 + MAX_TARGET_CHARS);
  const { angle, angleEnd, bare = "", bareEnd } = TARGET.exec(reach)?.groups ?? {};
  const isOver = (angle === undefined ? bareEnd : angleEnd) !== undefined;
  if (!isOver && reach.length < MAX_TARGET_CHARS) return "undecided";
  const target = angle ?? bare;
  // Escapes are read in more than one way.
  const isUnclear = isEndless || !isOver || target.includes("\\");
  return isUnclear || suspicious.some((words) => isDeceptive(words, target)) ? "deceptive" : "honest";
}

/** A link as Slack's own formatting has it, with the words behind the address. */
function judgeOwn(text: string, at: number): LinkVerdict {
  const reach = text.slice(at, at + MAX_TARGET_CHARS);
  const { target = "", words, bare } = OWN.exec(reach)?.groups ?? {};
  if (bare !== undefined) return "honest";
  if (words !== undefined) return isDeceptive(words, target) ? "deceptive" : "honest";
  return reach.length < MAX_TARGET_CHARS ? "undecided" : "deceptive";
}

/**
 * The words of a link that a bracket may end, in each way of reading: with the brackets in code counted, and
 * without them. `isEndless`: they begin so far back that nobody has looked there.
 */
function findWords(text: string, at: number): { words: string[]; isEndless: boolean } {
  const from = Math.max(0, at - MAX_WORDS_CHARS);
  const reach = text.slice(from, at);
  const paragraph = reach.slice(reach.lastIndexOf("\n\n") + 1);
  const isCut = from > 0 && paragraph === reach;
  if (!paragraph.includes("[")) return { words: [], isEndless: isCut };
  const masked = paragraph.includes("`") ? paragraph.replace(CODE, (code) => "`".repeat(code.length)) : paragraph;
  const starts = new Set([findOpening(paragraph), findOpening(masked)]);
  const isEndless = isCut && starts.delete(-1);
  starts.delete(-1);
  const words = [...starts].map((start) => paragraph.slice(start + 1).replace(INNER_TARGET, "]"));
  return { words, isEndless };
}

/** The bracket that is open at the end, -1 when there is none. */
function findOpening(text: string): number {
  let depth = 0;
  for (let at = text.length - 1; at >= 0; at--) {
    const isBracket = text[at] === "[" || text[at] === "]";
    if (!isBracket || ESCAPE.test(text.slice(Math.max(0, at - 10), at))) continue;
    if (text[at] === "]") depth += 1;
    else if (depth === 0) return at;
    else depth -= 1;
  }
  return -1;
}
