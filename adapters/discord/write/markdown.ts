import stringWidth from "string-width";
import { type CodeFence, isDelimiterRow, readFence, readFenceLine } from "../../../src/text/blocks.ts";
import { readFoldedQuote } from "../../../src/text/folded-quote.ts";
import { isDeceptive, isSameAddress } from "../../../src/text/links.ts";

/** Longest message, in UTF-16 units. */
export const MAX_LENGTH = 2_000;
/** Keeps three backticks inside a code block from ending it. */
const SPLIT_TICKS = "`\u200B``";
const SPECIAL = /[|#>\]`~_*]|^[ \t]*(?:\+|[-*\d.]+[ \t]+\[)/m;

/** Converts a model's Markdown to Markdown that Discord shows. Leaves an unfinished table or link unchanged. */
export function toDiscordMarkdown(markdown: string): string {
  if (!SPECIAL.test(markdown)) return markdown;
  const lines = markdown.split("\n");
  const shown: string[] = [];
  let prose: string[] = [];

  function endProse(): void {
    if (prose.length > 0) shown.push(rewriteProse(prose.join("\n")));
    prose = [];
  }

  for (let at = 0; at < lines.length; ) {
    const fence = readFence(lines[at] ?? "");
    const block = fence === undefined ? (readTable(lines, at) ?? readFolded(lines, at)) : readCode(lines, at, fence);
    if (block === undefined) {
      prose.push(lines[at] ?? "");
      at += 1;
      continue;
    }
    endProse();
    shown.push(block.shown);
    at += block.count;
  }
  endProse();
  return shown.join("\n");
}

/**
 * The length of the converted text, or of the original if that is longer. Discord does not document its unit; UTF-16
 * units are never fewer than code points.
 */
export function lengthOfMarkdown(markdown: string): number {
  return Math.max(markdown.length, toDiscordMarkdown(markdown).length);
}

/** Converts a fence, because Discord knows only three backticks, followed by at most one word. */
function readCode(lines: readonly string[], at: number, fence: CodeFence): { count: number; shown: string } {
  const { indent, info } = fence;
  const language = /^[\w+#.-]+(?=\s|$)/.exec(info)?.[0] ?? "";
  const code: string[] = [];
  let count = 1;
  let isClosed = false;
  while (at + count < lines.length && !isClosed) {
    const line = lines[at + count] ?? "";
    // Adds a line feed, so that the line is read as a possible closing fence.
    isClosed = readFenceLine(`${line}\n`, 0, fence).kind === "closing";
    if (!isClosed) code.push(line.replaceAll("```", SPLIT_TICKS));
    count += 1;
  }
  const closing = isClosed ? [`${indent}\`\`\``] : [];
  return { count, shown: [`${indent}\`\`\`${language}`, ...code, ...closing].join("\n") };
}

/** Covers a folded quote, because Discord cannot fold text. One click uncovers all of it. */
function readFolded(lines: readonly string[], at: number): { count: number; shown: string } | undefined {
  const quote = readFoldedQuote(lines, at);
  if (quote === undefined) return undefined;
  const words = quote.lines.map((line) => line.trim()).filter(Boolean);
  // Splits `||`, which would end the spoiler even inside code. Spaces keep the closing bars apart from the text.
  const covered = rewriteProse(words.join(" ").replaceAll("||", "| |"));
  return { count: quote.count, shown: `> **${quote.title}**\n> || ${covered} ||` };
}

/**
 * Matches code, URLs and escaped characters, which stay unchanged, and then everything else. Reads a link as generously
 * as Discord: across line ends and with spaces around its URL. Limits keep a text with nothing but brackets cheap.
 */
const PIECE = new RegExp(
  [
    /(?<kept>\\[^\w\s]|(?<!`)(?<run>`+)(?!`)[\s\S]*?(?<!`)\k<run>(?!`)|<[^<>\s]+>)/,
    /(?<link>!?\[(?<words>(?:\[[^\]]{0,200}\]|[^[\]]|\](?=[^[]{0,200}\])){0,500})\]\(\s{0,20}(?<target><[^<>\n]*>|[^()\s]*(?:\([^()\s]*\)[^()\s]*)*|[^<\s]\S{0,500}?)(?:\s{1,20}(?:"[^"]{0,200}"|'[^']{0,200}'))?\s{0,20}\))/,
    /(?<address>https?:\/\/[^\s<>]+)/,
    /(?<bars>\|\|)/,
    /__(?=[^\s_])(?<bold>[^_\n]*(?:_[^_\n]+)*)(?<=[^\s_])__(?!\w)/,
  ]
    .map(({ source }) => source)
    .join("|"),
  "g",
);
/** Matches a line that is a separate block. Code that starts in such a line also ends in it. */
const OWN_BLOCK = /^[ \t]*(?:>|#{1,3}[ \t]|-#[ \t]|[-*+][ \t]|\d{1,9}\.[ \t])[^\n]*$/;

export function rewriteProse(text: string): string {
  return text.split("\n").map(rewriteLineStart).join("\n").replace(PIECE, rewritePiece);
}

function rewriteLineStart(line: string): string {
  return (
    line
      // Discord knows only three levels of headings.
      .replace(/^( {0,3})#{4,6}(?=[ \t])/, "$1###")
      // Discord knows no nested quotes, and three marks would quote everything that follows.
      .replace(/^[ \t]*(?:>[ \t]*){2,}/, "> ")
      .replace(/^([ \t]*)\+(?=[ \t])/, "$1-")
      .replace(/^([ \t]*(?:[-*]|\d{1,9}\.)[ \t]+)\[([ xX])\](?=[ \t])/, (_, lead: string, box: string) => {
        return lead + (box === " " ? "☐" : "☑");
      })
      // A line of asterisks or underscores would open emphasis.
      .replace(/^ {0,3}(?:(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})$/, "---")
  );
}

function rewritePiece(piece: string, ...rest: unknown[]): string {
  const groups = rest.at(-1) as Record<string, string | undefined>;
  const { kept, run, address, link, words = "", target = "", bars, bold } = groups;
  if (kept !== undefined && run !== undefined && piece.includes("\n")) {
    const [text, offset] = [rest.at(-2) as string, rest.at(-3) as number];
    const before = text.slice(text.lastIndexOf("\n", offset - 1) + 1, offset);
    // Discord does not show this text as code, so a link in it would be active.
    if (OWN_BLOCK.test(before)) return run + piece.slice(run.length).replace(PIECE, rewritePiece);
  }
  if (kept !== undefined || address !== undefined) return piece;
  if (link !== undefined) return toHonestLink(link, words, target.replace(/^<|>$/g, ""));
  // Escapes `||`, because it would start a spoiler and hide the text up to the next `||`.
  if (bars !== undefined) return "\\|\\|";
  // Uses asterisks, because Discord underlines text between double underscores.
  return bold === undefined ? piece : `**${bold}**`;
}

/**
 * Makes a link safe to show: both URLs if its text is another URL, and a link instead of an image, because Discord
 * shows no images from text.
 */
export function toHonestLink(link: string, words: string, target: string): string {
  if (!isFollowed(target)) return link;
  const text = words.replace(/\s+/g, " ").trim();
  if (text === "" || isSameAddress(text, target)) return target;
  if (isDeceptive(text, target)) return `\`${text.replaceAll("`", "'")}\` (<${target}>)`;
  // Discord accepts no URL as the text of a link.
  if (/https?:\/\//i.test(text)) return target;
  return link.startsWith("!") ? link.slice(1) : link;
}

/** True for a target that Discord follows: a web address as browsers accept it, or a place inside Discord. */
function isFollowed(target: string): boolean {
  return URL.canParse(target) && /^(?:https?|discord):$/.test(new URL(target).protocol);
}

/** The width of one line of a table, over all columns. Longer text wraps inside its cell. */
const LINE_WIDTH = 96;
const LEAST_CELL = 8;
const CELL_BREAK = /(?<!\\)\|/;

/**
 * Reads the table that starts at `lines[at]`, if any. Returns its number of lines, and its columns as aligned text in a
 * code block, because Discord shows no tables.
 */
export function readTable(lines: readonly string[], at: number): { count: number; shown: string } | undefined {
  const [head = "", rule = ""] = lines.slice(at, at + 2);
  if (!head.includes("|") || !isDelimiterRow(rule)) return undefined;
  const header = readCells(head);
  const rules = readCells(rule);
  if (rules.length !== header.length) return undefined;
  let count = 2;
  while (lines[at + count]?.includes("|") === true && !isFence(lines[at + count])) count += 1;
  const rows = lines.slice(at + 2, at + count).map((line) => toRow(readCells(line), header.length));
  return { count, shown: render([header, ...rows], rules) };
}

function isFence(line: string | undefined): boolean {
  return /^[ \t>]*(?:`{3}|~{3})/.test(line ?? "");
}

function readCells(line: string): string[] {
  const inner = line
    .trim()
    .replace(/^\|/, "")
    .replace(/(?<!\\)\|$/, "");
  return inner.split(CELL_BREAK).map(toPlain);
}

/** Removes formatting marks, which a code block would show. */
function toPlain(cell: string): string {
  return cell
    .replaceAll("\\|", "|")
    .replace(/!?\[([^[\]]*)\]\(<?([^()\s<>]*)>?[^()]*\)/g, (_, text: string, url: string) =>
      text === "" || text === url ? url : `${text} (${url})`,
    )
    .replace(/(\*\*|__|~~)(?=\S)(.*?)(?<=\S)\1/g, "$2")
    .replace(/(?<![\w*])\*(?=[^\s*])([^*]*)(?<=[^\s*])\*(?![\w*])/g, "$1")
    .replace(/(`+)(.+?)\1/g, "$2")
    .replaceAll("```", "'''")
    .replace(/<br\s*\/?>/gi, " ")
    .replace(/\s+/g, " ")
    .trim();
}

/** Returns as many cells as the header has, with extra cells joined into the last one. */
function toRow(cells: readonly string[], count: number): string[] {
  const row = Array.from({ length: count }, (_, index) => cells[index] ?? "");
  return cells.length <= count ? row : [...row.slice(0, -1), cells.slice(count - 1).join(" | ")];
}

function render(rows: readonly string[][], rules: readonly string[]): string {
  const most = Math.max(LEAST_CELL, Math.floor(LINE_WIDTH / rules.length));
  const widths = rules.map((_, column) => {
    return Math.max(1, ...rows.map((row) => Math.min(most, widthOf(row[column] ?? ""))));
  });
  const lines = rows.map((row) => renderRow(row, widths, rules));
  const rule = widths.map((width) => "─".repeat(width)).join("─┼─");
  return ["```", ...(lines[0] ?? []), rule, ...lines.slice(1).flat(), "```"].join("\n");
}

function renderRow(row: readonly string[], widths: readonly number[], rules: readonly string[]): string[] {
  const cells = row.map((cell, column) => wrap(cell, widths[column] ?? 1));
  const height = Math.max(...cells.map((lines) => lines.length));
  return Array.from({ length: height }, (_, index) => {
    const parts = cells.map((lines, column) => pad(lines[index] ?? "", widths[column] ?? 1, rules[column] ?? ""));
    return parts.join(" │ ").trimEnd();
  });
}

/** Aligns a cell as the rule under the header says: `---:` right, `:---:` centred. */
function pad(text: string, width: number, rule: string): string {
  const room = Math.max(0, width - widthOf(text));
  if (!rule.endsWith(":")) return text + " ".repeat(room);
  const left = rule.startsWith(":") ? Math.floor(room / 2) : room;
  return " ".repeat(left) + text + " ".repeat(room - left);
}

const GRAPHEMES = new Intl.Segmenter("en", { granularity: "grapheme" });
/** Printable ASCII: one column per character. */
const PLAIN = /^[ -~]*$/;
/** Discord draws a combined character as one glyph of at most two columns, even if its parts have more. */
const MAX_COLUMNS = 2;

/** The columns of a text in a monospaced font: two per CJK character. */
export function widthOf(text: string): number {
  if (PLAIN.test(text)) return text.length;
  let width = 0;
  // Discord shows an escape code unchanged, so its characters count.
  for (const { segment } of GRAPHEMES.segment(text))
    width += Math.min(MAX_COLUMNS, stringWidth(segment, { countAnsiEscapeCodes: true }));
  return width;
}

/** Breaks a text into lines of at most `maxWidth` columns: between words, or inside a word that is longer than that. */
export function wrap(text: string, maxWidth: number): string[] {
  if (widthOf(text) <= maxWidth) return [text];
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(/\s+/).flatMap((word) => chop(word, maxWidth))) {
    if (line !== "" && widthOf(line) + 1 + widthOf(word) > maxWidth) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  lines.push(line);
  return lines;
}

function chop(word: string, maxWidth: number): string[] {
  if (widthOf(word) <= maxWidth) return [word];
  const pieces: string[] = [];
  let piece = "";
  let width = 0;
  for (const { segment } of GRAPHEMES.segment(word)) {
    const own = widthOf(segment);
    if (piece !== "" && width + own > maxWidth) {
      pieces.push(piece);
      piece = "";
      width = 0;
    }
    piece += segment;
    width += own;
  }
  return [...pieces, piece];
}
