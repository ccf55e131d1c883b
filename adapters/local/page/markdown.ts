import hljs from "@highlightjs/cdn-assets/es/highlight.min.js";
import DOMPurify from "dompurify";
import { Marked, type Token } from "marked";
import remend from "remend";
import { createCjkEmphasis } from "./emphasis.ts";
import { createMath, drawMath } from "./math.ts";
import { findMentions } from "./mentions.ts";

/** One top-level piece of a text: a paragraph, a list, a table, a code block. */
export interface Block {
  /** Equal keys look equal. */
  key: string;
  render: () => HTMLElement;
}

const MAX_HIGHLIGHTED_CHARS = 30_000;
/** Code in a line that is no longer than this is not broken at its hyphens: an option, a file, a name. */
const MAX_UNBROKEN_CHARS = 24;
const ALLOWED = {
  ALLOWED_TAGS:
    "p br strong em del code pre a ul ol li blockquote details summary h1 h2 h3 h4 h5 h6 hr table thead tbody tr th td input span div".split(
      " ",
    ),
  ALLOWED_ATTR: ["href", "class", "start", "type", "checked", "disabled", "align", "data-language", "data-tex"],
  ALLOW_DATA_ATTR: false,
  ALLOWED_URI_REGEXP: /^(?:https?:|mailto:)/i,
  // Every attribute that is not named here has to look like an address.
  ADD_URI_SAFE_ATTR: ["start", "type", "checked", "disabled", "align", "data-language", "data-tex"],
  RETURN_DOM_FRAGMENT: true as const,
};
/** An unfinished line that may still become a fence, a heading, a list item or a table. */
const UNCERTAIN_LINE = /^\s*(?:`{1,3}[^`\n]*|#{1,6}|[-*+>]|> \[(?:![a-z]*(?:\]-? ?)?)?|\d{1,3}[.)]?|\|.*|[*_~]{1,3})$/;

/** A quote that is to be folded: its title, and its lines. */
const FOLDED = /^> \[!thinking\]- ([^\n]+)\n?([\s\S]*)$/;

const marked: Marked = new Marked({
  gfm: true,
  breaks: true,
  renderer: {
    // Markup in an answer is text about markup, never markup of this page.
    html: ({ text }) => escapeHtml(text),
    // A remote picture would tell its server who reads this, and when.
    image: ({ href, text }) => `<a href="${escapeHtml(href)}">${escapeHtml(text === "" ? "picture" : text)}</a>`,
    blockquote: ({ raw }) => {
      const [, title, lines = ""] = FOLDED.exec(raw) ?? [];
      if (title === undefined) return false;
      const inside = marked.parse(lines.replace(/^> ?/gm, ""), { async: false });
      return `<details><summary>${escapeHtml(title)}</summary>${inside}</details>`;
    },
    codespan: ({ text }) =>
      `<code${text.length > MAX_UNBROKEN_CHARS ? "" : ' class="short"'}>${escapeHtml(text)}</code>`,
    code: ({ text, lang }) => {
      const language = /^[\w+#.-]{1,30}/.exec(lang ?? "")?.[0] ?? "";
      return `<pre data-language="${language}"><code>${highlight(text, language)}</code></pre>`;
    },
  },
});
marked.use(createMath(escapeHtml), createCjkEmphasis());

/** Cuts Markdown into blocks. Rendering is the expensive part, so the caller renders only the blocks that are new. */
export function toBlocks(markdown: string, names: readonly string[], keepsTex = false): Block[] {
  const tokens = marked.lexer(markdown);
  const links = JSON.stringify(tokens.links);
  return tokens
    .filter((token) => token.type !== "space" && token.type !== "def")
    .map((token) => ({
      key: `${token.type}:${links}:${token.raw}`,
      render: () => renderBlock(token, names, keepsTex),
    }));
}

/** A text as it was written, its marks included. */
export function toPlainBlock(text: string): Block {
  return {
    key: `plain:${text}`,
    render() {
      const block = document.createElement("div");
      block.className = "block";
      const paragraph = document.createElement("p");
      paragraph.className = "plain";
      paragraph.textContent = text;
      followScript(paragraph);
      block.append(paragraph);
      return block;
    },
  };
}

/** The part of a growing text that can be shown: half-written marks are closed, uncertain lines wait. */
export function toShowable(markdown: string): string {
  const lineStart = markdown.lastIndexOf("\n") + 1;
  const line = markdown.slice(lineStart);
  const isFenced = (markdown.match(/^\s*(?:```|~~~)/gm)?.length ?? 0) % 2 === 1;
  const isHeld = UNCERTAIN_LINE.test(line) && !(isFenced && !/^\s*`/.test(line));
  const settled = isHeld ? markdown.slice(0, lineStart) : markdown;
  return remend(withoutHalfTable(settled), { linkMode: "text-only", images: false, katex: false });
}

/** A table's head alone would be shown as a line of text and jump into a table a moment later. */
function withoutHalfTable(markdown: string): string {
  return markdown.replace(/(^|\n)\|[^\n]*\n?$/, (row, before: string, at: number) => {
    const previous = markdown.slice(0, at).split("\n").at(-1) ?? "";
    return previous.startsWith("|") ? row : before;
  });
}

function renderBlock(token: Token, names: readonly string[], keepsTex: boolean): HTMLElement {
  const fragment = DOMPurify.sanitize(marked.parser([token]), ALLOWED);
  const block = document.createElement("div");
  block.className = "block";
  block.append(fragment);
  for (const part of block.children) followScript(part);
  for (const link of block.querySelectorAll("a")) guardLink(link);
  for (const box of block.querySelectorAll<HTMLInputElement>("li > input, li > p > input")) labelBox(box);
  for (const table of block.querySelectorAll("table")) wrapTable(table);
  for (const code of block.querySelectorAll("pre")) wrapCode(code);
  markMentions(block, names);
  if (!keepsTex) drawMath(block);
  return block;
}

/** Arabic and Hebrew begin at the right, with their lists and tables; code is written from the left everywhere. */
function followScript(part: Element): void {
  if (part.localName !== "pre") part.setAttribute("dir", "auto");
}

function guardLink(link: HTMLAnchorElement): void {
  const place = link.protocol === "mailto:" ? link.pathname : link.host;
  // A link without a target is shown as text.
  if (!link.hasAttribute("href") || place === "") return link.replaceWith(...link.childNodes);
  link.target = "_blank";
  link.rel = "noopener noreferrer nofollow";
  // The text of a link may name another place than it leads to.
  link.dataset["host"] = place;
}

/** A box of a task list is named by the words beside it. */
function labelBox(box: HTMLInputElement): void {
  const words = [...(box.parentElement?.childNodes ?? [])].filter(
    (node) => !(node instanceof HTMLElement && node.matches("ul, ol")),
  );
  const label = words.map(({ textContent }) => textContent).join("");
  box.setAttribute("aria-label", label.trim().replaceAll(/\s+/g, " "));
}

function wrapTable(table: HTMLTableElement): void {
  const box = document.createElement("div");
  box.className = "table";
  box.tabIndex = 0;
  table.replaceWith(box);
  box.append(table);
}

function wrapCode(pre: HTMLPreElement): void {
  const box = document.createElement("div");
  box.className = "code";
  const head = document.createElement("div");
  head.className = "code-head";
  const label = document.createElement("span");
  label.textContent = pre.dataset["language"] || "text";
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  head.append(label, button);
  pre.tabIndex = 0;
  pre.replaceWith(box);
  box.append(head, pre);
}

function markMentions(block: HTMLElement, names: readonly string[]): void {
  const walker = document.createTreeWalker(block, NodeFilter.SHOW_TEXT);
  const texts: Text[] = [];
  while (walker.nextNode()) texts.push(walker.currentNode as Text);
  for (const text of texts) {
    if (text.data.includes("@") && text.parentElement?.closest("code, pre, a") === null) splitMentions(text, names);
  }
}

function splitMentions(text: Text, names: readonly string[]): void {
  for (const { start, end } of findMentions(text.data, names).toReversed()) {
    const chip = document.createElement("span");
    chip.className = "mention";
    chip.textContent = text.data.slice(start, end);
    text.splitText(end);
    text.splitText(start).replaceWith(chip);
  }
}

function highlight(code: string, language: string): string {
  if (code.length > MAX_HIGHLIGHTED_CHARS || hljs.getLanguage(language) === undefined) return escapeHtml(code);
  return hljs.highlight(code, { language, ignoreIllegals: true }).value;
}

function escapeHtml(text: string): string {
  const entities: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? "");
}
