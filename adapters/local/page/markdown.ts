import hljs from "@highlightjs/cdn-assets/es/highlight.min.js";
import DOMPurify from "dompurify";
import { Marked, type Token } from "marked";
import remend from "remend";
import { createCjkEmphasis } from "./emphasis.ts";
import { createMath, drawMath } from "./math.ts";

/** One top-level block of a text, such as a paragraph or a table. */
export interface Block {
  /** Blocks with equal keys look the same. */
  key: string;
  render: () => HTMLElement;
}

const MAX_HIGHLIGHTED_CHARS = 30_000;
/** Inline code up to this length does not break at its hyphens, because it is an option, a file or a name. */
const MAX_UNBROKEN_CHARS = 24;
const ALLOWED = {
  ALLOWED_TAGS:
    "p br strong em del code pre a ul ol li blockquote details summary h1 h2 h3 h4 h5 h6 hr table thead tbody tr th td input span div".split(
      " ",
    ),
  ALLOWED_ATTR: ["href", "class", "start", "type", "checked", "disabled", "align", "data-language", "data-tex"],
  ALLOW_DATA_ATTR: false,
  // Links of a search lead to a chat on this page.
  ALLOWED_URI_REGEXP: /^(?:https?:|mailto:|#chat-[\w-]+$)/i,
  // DOMPurify requires a URL as the value of all other attributes.
  ADD_URI_SAFE_ATTR: ["start", "type", "checked", "disabled", "align", "data-language", "data-tex"],
  RETURN_DOM_FRAGMENT: true as const,
};
/** Matches an unfinished line that can still become a fence, a heading, a list item or a table. */
const UNCERTAIN_LINE = /^\s*(?:`{1,3}[^`\n]*|#{1,6}|[-*+>]|> \[(?:![a-z]*(?:\]-? ?)?)?|\d{1,3}[.)]?|\|.*|[*_~]{1,3})$/;

const FOLDED = /^> \[!thinking\]- ([^\n]+)\n?([\s\S]*)$/;

const marked: Marked = new Marked({
  gfm: true,
  breaks: true,
  renderer: {
    // Shows HTML of an answer as text, so that it never becomes part of this page.
    html: ({ text }) => escapeHtml(text),
    // Shows a remote image as a link: loading it would tell its server who reads this and when.
    image: ({ href, text }) => `<a href="${escapeHtml(href)}">${escapeHtml(text === "" ? "picture" : text)}</a>`,
    blockquote: ({ raw }) => {
      const [, title, lines = ""] = FOLDED.exec(raw) ?? [];
      if (title === undefined) return false;
      const inside = marked.parse(lines.replace(/^> ?/gm, ""), { async: false });
      return `<details><summary>${escapeHtml(title)}</summary>${inside}</details>`;
    },
    // Reads Discord's mark for small print.
    paragraph: ({ raw }) => {
      if (!/^(?:-# [^\n]+\n?)+$/.test(raw)) return false;
      return `<p class="small">${marked.parseInline(raw.trimEnd().replace(/^-# /gm, ""), { async: false })}</p>`;
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

/** Splits Markdown into blocks. The caller renders only new ones, because rendering is expensive. */
export function toBlocks(markdown: string, keepsTex = false): Block[] {
  const tokens = marked.lexer(markdown);
  const links = JSON.stringify(tokens.links);
  return tokens
    .filter((token) => token.type !== "space" && token.type !== "def")
    .map((token) => ({
      key: `${token.type}:${links}:${token.raw}`,
      render: () => renderBlock(token, keepsTex),
    }));
}

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

/** The visible part of a growing text: unfinished marks are closed, and uncertain lines are left out. */
export function toShowable(markdown: string): string {
  const lineStart = markdown.lastIndexOf("\n") + 1;
  const line = markdown.slice(lineStart);
  const isFenced = (markdown.match(/^\s*(?:```|~~~)/gm)?.length ?? 0) % 2 === 1;
  const isHeld = UNCERTAIN_LINE.test(line) && !(isFenced && !/^\s*`/.test(line));
  const settled = isHeld ? markdown.slice(0, lineStart) : markdown;
  return remend(withoutHalfTable(settled), { linkMode: "text-only", images: false, katex: false });
}

/** Removes the header of an unfinished table, which would look like a line of text until the next line arrives. */
function withoutHalfTable(markdown: string): string {
  return markdown.replace(/(^|\n)\|[^\n]*\n?$/, (row, before: string, at: number) => {
    const previous = markdown.slice(0, at).split("\n").at(-1) ?? "";
    return previous.startsWith("|") ? row : before;
  });
}

function renderBlock(token: Token, keepsTex: boolean): HTMLElement {
  const fragment = DOMPurify.sanitize(marked.parser([token]), ALLOWED);
  const block = document.createElement("div");
  block.className = "block";
  block.append(fragment);
  for (const part of block.children) followScript(part);
  for (const link of block.querySelectorAll("a")) guardLink(link);
  for (const box of block.querySelectorAll<HTMLInputElement>("li > input, li > p > input")) labelBox(box);
  for (const table of block.querySelectorAll("table")) wrapTable(table);
  for (const code of block.querySelectorAll("pre")) wrapCode(code);
  if (!keepsTex) drawMath(block);
  return block;
}

/** Arabic and Hebrew start at the right, including lists and tables. Code always starts at the left. */
function followScript(part: Element): void {
  if (part.localName !== "pre") part.setAttribute("dir", "auto");
}

function guardLink(link: HTMLAnchorElement): void {
  if (link.getAttribute("href")?.startsWith("#") === true) return;
  const place = link.protocol === "mailto:" ? link.pathname : link.host;
  // Shows a link without a target as text.
  if (!link.hasAttribute("href") || place === "") return link.replaceWith(...link.childNodes);
  link.target = "_blank";
  link.rel = "noopener noreferrer nofollow";
  // The page shows the host, because a link's text can name another site.
  link.dataset["host"] = place;
}

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

function highlight(code: string, language: string): string {
  if (code.length > MAX_HIGHLIGHTED_CHARS || hljs.getLanguage(language) === undefined) return escapeHtml(code);
  return hljs.highlight(code, { language, ignoreIllegals: true }).value;
}

function escapeHtml(text: string): string {
  const entities: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? "");
}
