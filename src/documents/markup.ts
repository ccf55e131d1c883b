import { Parser } from "htmlparser2";
import { truncate } from "../text/truncate.ts";
import { type DocumentText, ONLY_BEGINNING } from "./document.ts";
import { toMarkdownTable } from "./table.ts";

const SKIPPED = new Set(["script", "style", "head", "template", "noscript", "svg", "object", "iframe", "select"]);
const BLOCKS =
  /^(address|article|aside|blockquote|body|dd|details|div|dl|dt|fieldset|figcaption|figure|footer|form|h[1-6]|header|hr|li|main|nav|ol|p|pre|section|summary|table|td|th|tr|ul)$/;
const HIDDEN = /display\s*:\s*none|visibility\s*:\s*hidden/i;
const FONT_SIZE = /(?:^|;)\s*font(?:-size)?\s*:([^;]*)/gi;
const MAX_LINK_CHARS = 300;
/** Maximum nesting of elements. Real pages have less, and the parser is slow if there is more. */
const MAX_DEPTH = 2_000;

interface Table {
  rows: string[][];
  /** True if a cell has several lines, which means that the table is used for layout. */
  isLayout: boolean;
}

/** Converts a web page or an HTML email to Markdown without its hidden parts. Ignores the document's own entities. */
export function readMarkup(html: string, maxChars: number): DocumentText {
  const writer = createWriter();
  const tables: Table[] = [];
  const lists: Array<{ next: number | undefined }> = [];
  const links: Array<{ href: string | undefined; mark: number }> = [];
  let skipped: string[] = [];
  /** For each open element: true if its text has font size 0, set or inherited. */
  const sizeless: boolean[] = [];
  let depth = 0;
  let isFull = false;
  let title = "";

  const parser = new Parser(
    {
      onopentag(name, attributes) {
        if (++depth > MAX_DEPTH) stop();
        sizeless.push(isSizeless(attributes) ?? sizeless.at(-1) ?? false);
        if (skipped.length > 0 || isSkipped(name, attributes)) {
          if (!VOID.has(name)) skipped.push(name);
          return;
        }
        if (BLOCKS.test(name)) writer.breakLine(SPACED.test(name));
        if (name === "table") tables.push({ rows: [], isLayout: false });
        else if (name === "tr") tables.at(-1)?.rows.push([]);
        else if (name === "td" || name === "th") writer.open();
        else if (name === "ol") lists.push({ next: 1 });
        else if (name === "ul") lists.push({ next: undefined });
        else if (name === "li") writer.write(toBullet(lists), true);
        else if (name === "pre") writer.startCode();
        else if (name === "br") writer.breakLine(false);
        else if (name === "hr") writer.write("---", true);
        else if (name === "img") writer.write(toPicture(attributes["alt"]), false);
        else if (name === "a") links.push({ href: attributes["href"], mark: writer.length() });
        else if (/^h[1-6]$/.test(name)) writer.write(`${"#".repeat(Number(name[1]))} `, true);
      },
      ontext(text) {
        if (skipped.length === 0 && sizeless.at(-1) !== true) writer.write(text, false);
        else if (skipped[0] === "head" && skipped.at(-1) === "title" && title.length < MAX_LINK_CHARS) title += text;
        if (writer.length() > maxChars) stop();
      },
      onclosetag(name) {
        depth--;
        sizeless.pop();
        if (skipped.length > 0) {
          skipped = closeSkipped(skipped, name);
          return;
        }
        if (name === "td" || name === "th") closeCell(writer, tables.at(-1));
        else if (name === "table") closeTable(writer, tables.pop());
        else if (name === "ol" || name === "ul") lists.pop();
        else if (name === "pre") writer.endCode();
        else if (name === "a") closeLink(writer, links.pop());
        if (BLOCKS.test(name)) writer.breakLine(SPACED.test(name));
      },
    },
    { decodeEntities: true },
  );

  function stop(): void {
    isFull = true;
    parser.pause();
  }

  parser.write(html);
  if (!isFull) parser.end();
  for (const table of tables.toReversed()) closeTable(writer, table);
  const heading = title.replace(/\s+/g, " ").trim();
  const text = (heading === "" ? "" : `${heading}\n\n`) + writer.text();
  return { text, ...(heading !== "" && { title: heading }), ...(isFull ? { leftOut: ONLY_BEGINNING } : {}) };
}

const VOID = new Set(["br", "hr", "img", "input", "link", "meta", "source", "wbr", "area", "base", "col", "embed"]);
const SPACED = /^(blockquote|dl|figure|h[1-6]|ol|p|pre|table|ul)$/;

function isSkipped(name: string, attributes: Readonly<Record<string, string>>): boolean {
  return SKIPPED.has(name) || "hidden" in attributes || HIDDEN.test(attributes["style"] ?? "");
}

/** True for font size 0; undefined if the element sets none. Emails often set 0 around elements with their own size. */
function isSizeless(attributes: Readonly<Record<string, string>>): boolean | undefined {
  const size = [...(attributes["style"] ?? "").matchAll(FONT_SIZE)].at(-1)?.[1];
  return size === undefined ? undefined : /^\s*0(?![.\d])/.test(size);
}

function closeSkipped(skipped: string[], name: string): string[] {
  const at = skipped.lastIndexOf(name);
  return at === -1 ? skipped : skipped.slice(0, at);
}

function toBullet(lists: ReadonlyArray<{ next: number | undefined }>): string {
  const list = lists.at(-1);
  const indent = "  ".repeat(Math.min(8, Math.max(0, lists.length - 1)));
  if (list?.next === undefined) return `${indent}- `;
  return `${indent}${list.next++}. `;
}

function toPicture(alt: string | undefined): string {
  const words = alt?.trim() ?? "";
  return words === "" ? "" : `[picture: ${truncate(words, MAX_LINK_CHARS)}]`;
}

function closeLink(writer: Writer, link: { href: string | undefined; mark: number } | undefined): void {
  const href = link?.href?.trim() ?? "";
  const isUseful = /^(https?|mailto):/i.test(href) && href.length <= MAX_LINK_CHARS;
  if (link === undefined || !isUseful || writer.length() === link.mark || writer.endsWith(href)) return;
  writer.write(` (${href})`, false);
}

function closeCell(writer: Writer, table: Table | undefined): void {
  const text = writer.close().trim();
  if (table === undefined) {
    writer.write(text, true);
    return;
  }
  if (text.includes("\n")) table.isLayout = true;
  if (table.rows.length === 0) table.rows.push([]);
  table.rows.at(-1)?.push(text);
}

function closeTable(writer: Writer, table: Table | undefined): void {
  if (table === undefined) return;
  const rows = table.rows.filter((row) => row.some((cell) => cell !== ""));
  if (rows.length === 0) return;
  const isData = !table.isLayout && rows.some((row) => row.length > 1);
  const text = isData ? toMarkdownTable(rows, Infinity).text : rows.flat().filter(Boolean).join("\n\n");
  writer.breakLine(true);
  writer.write(text, true);
  writer.breakLine(true);
}

/** Joins text as browsers do: white space becomes one space, and blocks start on new lines. */
interface Writer {
  /** `isExact` keeps white space unchanged. */
  write(text: string, isExact: boolean): void;
  breakLine(isSpaced: boolean): void;
  startCode(): void;
  endCode(): void;
  /** Starts a separate text; `close` returns that text. */
  open(): void;
  close(): string;
  /** Returns the length of all text written until now, including separate texts that are still open. */
  length(): number;
  endsWith(text: string): boolean;
  text(): string;
}

interface Text {
  parts: string[];
  last: string;
  /** How many line breaks precede the next word. */
  breaks: number;
}

function createWriter(): Writer {
  const texts: Text[] = [{ parts: [], last: "", breaks: 0 }];
  let chars = 0;
  let codeDepth = 0;
  const top = () => texts.at(-1) ?? { parts: [], last: "", breaks: 0 };

  function put(text: Text, words: string): void {
    if (words === "") return;
    const breaks = text.parts.length > 0 ? text.breaks : 0;
    if (breaks > 0) text.parts.push("\n".repeat(breaks));
    text.breaks = 0;
    text.parts.push(words);
    text.last = words;
    chars += breaks + words.length;
  }

  return {
    write(words, isExact) {
      const text = top();
      if (isExact || codeDepth > 0) {
        put(text, words);
        return;
      }
      const plain = words.replace(/[\s\u200b\u00ad]+/g, " ");
      const isAtStart = text.breaks > 0 || text.parts.length === 0 || /\s$/.test(text.last);
      put(text, isAtStart ? plain.trimStart() : plain);
    },
    breakLine(isSpaced) {
      const text = top();
      text.breaks = Math.max(text.breaks, isSpaced ? 2 : 1);
    },
    startCode() {
      codeDepth++;
      put(top(), "```\n");
    },
    endCode() {
      codeDepth = Math.max(0, codeDepth - 1);
      put(top(), "\n```");
    },
    open: () => void texts.push({ parts: [], last: "", breaks: 0 }),
    close: () => (texts.length > 1 ? (texts.pop()?.parts.join("") ?? "") : ""),
    length: () => chars,
    endsWith: (text) => top().last.endsWith(text),
    text: () => {
      const all = texts.map(({ parts }) => parts.join("")).join("\n");
      return all.replace(/(?<![ \t])[ \t]+$/gm, "").trim();
    },
  };
}
