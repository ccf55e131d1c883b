import { isDeceptive, namesHost } from "../../../src/text/links.ts";
import { truncate } from "../../../src/text/truncate.ts";

/**
 * Markup for people, groups, channels and dates. Slack obeys it everywhere, even in code: it notifies people or
 * replaces the markup. https://docs.slack.dev/messaging/formatting-message-text
 */
const CONTROL = /<(?=!(?:channel|here|everyone|subteam|date)|[@#][A-Z0-9])/g;
/** Matches the end of a text if it could be the start of markup for a person, group, channel or date. */
const UNDECIDED = /<(?:!(?:[a-z]{0,7})?|[@#])?$/;
/**
 * The longest message in bytes of UTF-8. According to other apps' authors, Slack refuses streamed messages of more than
 * 10.6 to 11.3 kB. A posted message can be longer, but the text is split before the bot knows how it will be written.
 */
export const MAX_LENGTH = 9_500;
export const NEARLY_FULL = 0.75 * MAX_LENGTH;
/** An invisible zero-width space. Inside markup, it keeps Slack from obeying the markup. */
const GAP = "\u200B";
/** The longest text for notifications and for places that show no message. */
const FALLBACK_CHARS = 3_000;
/** Matches a possible end of a link's label, or the start of a link in Slack's own syntax. */
const PLACE = /\](?=[([:]|$)|<(?=(?:https?|mailto):|[a-z]{0,6}$)/gi;
/** Matches the URL after the label, even if it is incomplete. */
const TARGET = /^\(\s{0,20}(?:<(?<angle>[^<>\n]*)(?<angleEnd>[<>\n])?|(?<bare>[^\s)<][^\s)]*)?(?<bareEnd>[\s)])?)/;
const OWN = /^<(?<target>[^<>|\n]*)(?:\|(?<words>[^<>\n]*)(?=[<>\n])|(?<bare>[<>\n]))?/;
const MAX_WORDS_CHARS = 600;
const MAX_TARGET_CHARS = 2_000;
const CODE = /(?<!`)(`+)(?!`)[^\n]*?(?<!`)\1(?!`)/g;
/** Matches the URL of a link inside another link's label, where Slack does not show it. */
const INNER_TARGET = /\]\([^\s()]*\)/g;
const ESCAPE = /(?<!\\)(?:\\\\)*\\$/;

/**
 * Converts a model's Markdown so that it notifies no one, and no link leads elsewhere than its label says. The result
 * for a longer text starts with the settled part of the result for a shorter one.
 */
export function toSlackMarkdown(markdown: string): string {
  return separate(markdown, findDeceptiveLinks(markdown).deceptive);
}

/**
 * Truncates a growing text to the part that will certainly stay in its message unchanged. Leaves out the start of a
 * possible mention. Leaves out a link whose label is a URL until the link's target is known. When the message is nearly
 * full, keeps only whole paragraphs, because the message will end between two of them.
 */
export function toSettledMarkdown(source: string): string {
  const { deceptive, undecidedAt = source.length } = findDeceptiveLinks(source);
  const end = Math.min(undecidedAt, UNDECIDED.exec(source)?.index ?? source.length);
  const settled = separate(source.slice(0, end), deceptive);
  if (Buffer.byteLength(settled) <= NEARLY_FULL) return settled;
  const sure = Buffer.from(settled)
    .subarray(0, NEARLY_FULL)
    .toString()
    .replace(/\uFFFD+$/, "").length;
  // A heading belongs to the text below it, which may be in the next message.
  const wholeParagraphs = settled
    .slice(0, Math.max(settled.lastIndexOf("\n\n"), 0))
    .replace(/(?:^|\n)#{1,6} [^\n]*\s*$/, "");
  return settled.slice(0, Math.max(sure, wholeParagraphs.length)).trimEnd();
}

export function isNearlyFull(source: string): boolean {
  return Buffer.byteLength(source) > NEARLY_FULL;
}

/** Inserts a gap at each of the ascending `places`, and into all markup that notifies people. */
function separate(text: string, places: readonly number[]): string {
  const starts = [0, ...places.filter((place) => place < text.length)];
  const pieces = starts.map((start, index) => text.slice(start, starts[index + 1]));
  return pieces.join(GAP).replace(CONTROL, `<${GAP}`);
}

/** The length of a text in a streamed message, in bytes of UTF-8. */
export function lengthOfMarkdown(markdown: string): number {
  return Buffer.byteLength(toSlackMarkdown(markdown));
}

export function toFallback(markdown: string): string {
  return cutMarkup(escapeMarkup(markdown), FALLBACK_CHARS);
}

export function escapeMarkup(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/** Truncates markup, but never inside a character or an escape. */
export function cutMarkup(markup: string, maxChars: number): string {
  if (markup.length <= maxChars) return markup;
  return truncate(markup, maxChars).replace(/&[a-z]{0,3}…$/, "…");
}

export interface LinkFindings {
  /** The indices at which a gap breaks a misleading link. A longer text has the same indices and perhaps more. */
  deceptive: number[];
  /** The first index at which the findings still depend on later text. */
  undecidedAt: number | undefined;
}

/** Finds links whose label is one URL and whose target is another, even in code, whose end can be unclear. */
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

/** `at` is the index of the bracket after the label. */
function judgeLink(text: string, at: number): LinkVerdict {
  const { words, isEndless } = findWords(text, at);
  const suspicious = words.filter(namesHost);
  if (suspicious.length === 0 && !isEndless) return "honest";
  const next = text[at + 1];
  if (next === undefined) return "undecided";
  // This is a reference link or its definition. Its URL is elsewhere in the text.
  if (next !== "(") return suspicious.length > 0 ? "deceptive" : "honest";
  const reach = text.slice(at + 1, at + 1 + MAX_TARGET_CHARS);
  const { angle, angleEnd, bare = "", bareEnd } = TARGET.exec(reach)?.groups ?? {};
  const isOver = (angle === undefined ? bareEnd : angleEnd) !== undefined;
  if (!isOver && reach.length < MAX_TARGET_CHARS) return "undecided";
  const target = angle ?? bare;
  // Counts every escape as unclear, because readers of Markdown disagree on escapes.
  const isUnclear = isEndless || !isOver || target.includes("\\");
  return isUnclear || suspicious.some((words) => isDeceptive(words, target)) ? "deceptive" : "honest";
}

/** Judges a link in Slack's own syntax, with the label after the URL. */
function judgeOwn(text: string, at: number): LinkVerdict {
  const reach = text.slice(at, at + MAX_TARGET_CHARS);
  const { target = "", words, bare } = OWN.exec(reach)?.groups ?? {};
  if (bare !== undefined) return "honest";
  if (words !== undefined) return isDeceptive(words, target) ? "deceptive" : "honest";
  return reach.length < MAX_TARGET_CHARS ? "undecided" : "deceptive";
}

/**
 * Returns the possible link labels before a bracket: one counts brackets inside code spans, the other ignores them.
 * `isEndless` is true if a label may start too far back to check.
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

/** The index of the last unclosed bracket; -1 if all are closed. */
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
