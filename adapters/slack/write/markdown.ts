import { splitMarkdown } from "../../../src/text/split.ts";
import { truncate } from "../../../src/text/truncate.ts";
import { findDeceptiveLinks } from "./links.ts";

/**
 * Markup that notifies people or that Slack rewrites wherever it stands, in code too: people, groups, channels, dates.
 * https://docs.slack.dev/messaging/formatting-message-text
 */
const CONTROL = /<(?=!(?:channel|here|everyone|subteam|date)|[@#][A-Z0-9])/g;
/** The beginning of what may become such markup with the next characters. */
const UNDECIDED = /<(?:!(?:[a-z]{0,7})?|[@#])?$/;
/**
 * Longest message, in bytes of UTF-8: authors of other apps measured that Slack refuses streamed messages of more than
 * 10.6 to 11.3 kB. A posted message has more room, but when the text is split it is not known yet how it will be written.
 */
export const MAX_LENGTH = 9_500;
export const NEARLY_FULL = 0.75 * MAX_LENGTH;
/** A zero-width space: invisible, and it keeps Slack from reading the markup around it. */
const GAP = "\u200B";
/** Longest text that is shown in notifications, and where the message itself cannot be. */
const FALLBACK_CHARS = 3_000;

/**
 * Markdown as models write it, in which nothing notifies anybody, and no link leads elsewhere than its words say. Grows
 * with its text: as far as that has settled, a longer one begins with it.
 */
export function toSlackMarkdown(markdown: string): string {
  return separate(markdown, findDeceptiveLinks(markdown).deceptive);
}

/**
 * Cuts a text that still grows to what is certain to stay in its message as it is: no beginning of a mention, no link
 * whose words name an address before its own is known, and once the message is nearly full only whole paragraphs,
 * because between those it will end.
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
  // A heading goes with the text below it, which may come in the next message.
  const wholeParagraphs = settled
    .slice(0, Math.max(settled.lastIndexOf("\n\n"), 0))
    .replace(/(?:^|\n)#{1,6} [^\n]*\s*$/, "");
  return settled.slice(0, Math.max(sure, wholeParagraphs.length)).trimEnd();
}

export function isNearlyFull(source: string): boolean {
  return Buffer.byteLength(source) > NEARLY_FULL;
}

/** Puts a gap at each of the ascending `places`, and into all markup that notifies people. */
function separate(text: string, places: readonly number[]): string {
  const starts = [0, ...places.filter((place) => place < text.length)];
  const pieces = starts.map((start, index) => text.slice(start, starts[index + 1]));
  return pieces.join(GAP).replace(CONTROL, `<${GAP}`);
}

/** Length of a text as it counts against a streamed message: bytes of UTF-8. */
export function lengthOfMarkdown(markdown: string): number {
  return Buffer.byteLength(toSlackMarkdown(markdown));
}

/** The messages that an answer comes to on Slack, in the Markdown that its blocks are given. */
export function toSlackPreview(markdown: string): string[] {
  const parts = splitMarkdown(markdown, { maxLength: MAX_LENGTH, lengthOf: lengthOfMarkdown });
  return parts.map(({ text }) => toSlackMarkdown(text));
}

/** Plain words for notifications and screen readers. */
export function toFallback(markdown: string): string {
  return cutMarkup(escapeMarkup(markdown), FALLBACK_CHARS);
}

/** Letters that Slack reads as markup, written so that they are only letters. */
export function escapeMarkup(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/** Never ends within a character or an escaped letter. */
export function cutMarkup(markup: string, maxChars: number): string {
  if (markup.length <= maxChars) return markup;
  return truncate(markup, maxChars).replace(/&[a-z]{0,3}…$/, "…");
}
