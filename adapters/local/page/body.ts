import { toBoundary } from "./format.ts";
import { type Block, toBlocks, toPlainBlock, toShowable } from "./markdown.ts";

export interface BodyContent {
  text: string;
  /** True if the text is still growing. The page then lets it grow smoothly, with a caret at its end. */
  isStreaming: boolean;
  keepsTex?: boolean;
}

/** The page shows new text over about this time, so that the text grows smoothly. */
const SPREAD_MS = 350;
const MIN_CHARS_PER_MS = 0.12;
const COPIED_MS = 1500;
const STILL = matchMedia("(prefers-reduced-motion: reduce)");

/**
 * Redraws only the blocks that changed: each step of a growing answer redraws only its last paragraph, and a growing
 * code block keeps its scroll position.
 */
class MessageBody extends HTMLElement {
  #content: BodyContent = { text: "", isStreaming: false };
  #blocks: { key: string; element: HTMLElement }[] = [];
  #shown = 0;
  #frame = 0;
  #lastFrameAt = 0;
  #isFirst = true;

  set content(content: BodyContent) {
    const { text, isStreaming } = this.#content;
    if (text === content.text && isStreaming === content.isStreaming && !this.#isFirst) return;
    this.#shown = Math.min(this.#shown, commonLength(text, content.text));
    // Shows text without animation if it was complete before the page opened.
    if ((this.#isFirst && !content.isStreaming) || STILL.matches || document.hidden) this.#shown = content.text.length;
    this.#isFirst = false;
    this.#content = content;
    this.#step(performance.now());
  }

  disconnectedCallback(): void {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    this.#shown = this.#content.text.length;
  }

  connectedCallback(): void {
    this.addEventListener("click", copyCode);
  }

  #step(now: number): void {
    const elapsedMs = Math.min(now - this.#lastFrameAt, 50);
    this.#lastFrameAt = now;
    const missing = this.#content.text.length - this.#shown;
    if (missing > 0) {
      const perMs = Math.max(missing / SPREAD_MS, MIN_CHARS_PER_MS);
      this.#shown = toBoundary(this.#content.text, this.#shown + Math.max(1, Math.round(perMs * elapsedMs)));
    }
    this.#draw();
    cancelAnimationFrame(this.#frame);
    this.#frame = this.#shown < this.#content.text.length ? requestAnimationFrame((at) => this.#step(at)) : 0;
  }

  #draw(): void {
    const { text, isStreaming, keepsTex = false } = this.#content;
    const isGrowing = isStreaming || this.#shown < text.length;
    const shown = isGrowing ? text.slice(0, this.#shown) : text;
    try {
      this.#place(toBlocks(isGrowing ? toShowable(shown) : shown, keepsTex));
    } catch {
      // Very deep Markdown overflows the stack. Shows it as plain text, so that the other messages stay visible.
      this.#place([toPlainBlock(shown)]);
    }
    this.classList.toggle("growing", isGrowing);
    this.#placeCaret(isGrowing);
  }

  #place(blocks: readonly Block[]): void {
    for (const [index, block] of blocks.entries()) {
      const there = this.#blocks[index];
      if (there?.key === block.key) continue;
      const element = block.render();
      if (there === undefined) {
        this.append(element);
        this.#blocks.push({ key: block.key, element });
      } else {
        this.#blocks[index] = { key: block.key, element: replace(there.element, element) };
      }
    }
    for (const { element } of this.#blocks.splice(blocks.length)) element.remove();
  }

  #placeCaret(isShown: boolean): void {
    for (const old of this.querySelectorAll(".caret")) old.remove();
    if (!isShown) return;
    const caret = document.createElement("span");
    caret.className = "caret";
    lastText(this).append(caret);
  }
}

/** Replaces only the lines of a code block. A new element would lose the scroll position. */
function replace(old: HTMLElement, fresh: HTMLElement): HTMLElement {
  const [oldCode, freshCode] = [old.querySelector("pre > code"), fresh.querySelector("pre > code")];
  const isOneCode = old.firstElementChild?.className === "code" && fresh.firstElementChild?.className === "code";
  if (!isOneCode || oldCode === null || freshCode === null) {
    old.replaceWith(fresh);
    return fresh;
  }
  oldCode.replaceChildren(...freshCode.childNodes);
  old.querySelector(".code-head span")?.replaceWith(...(fresh.querySelectorAll(".code-head span") ?? []));
  return old;
}

function lastText(root: HTMLElement): HTMLElement {
  let element = root;
  for (;;) {
    const next = element.lastElementChild;
    if (
      !(next instanceof HTMLElement) ||
      !next.matches("div, p, ul, ol, li, pre, code, blockquote, h1, h2, h3, h4, h5, h6")
    ) {
      return element;
    }
    // In a list item with a list inside, the item's own text can follow the inner list.
    if (element.lastChild instanceof Text && element.lastChild.data.trim() !== "") return element;
    if (next.matches(".table, p > code, li > code")) return element;
    element = next;
  }
}

function copyCode(event: Event): void {
  const button = event.target instanceof Element ? event.target.closest<HTMLButtonElement>("button.copy") : null;
  const code = button?.closest(".code")?.querySelector("code")?.textContent;
  if (button !== null && typeof code === "string") void copyFrom(button, code.replace(/\n$/, ""));
}

async function copyFrom(button: HTMLButtonElement, code: string): Promise<void> {
  button.textContent = (await copyText(code)) ? "Copied" : "Not allowed";
  setTimeout(() => (button.textContent = "Copy"), COPIED_MS);
}

/** Resolves to true if the browser allowed the copy. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

function commonLength(a: string, b: string): number {
  const most = Math.min(a.length, b.length);
  let length = 0;
  while (length < most && a.charCodeAt(length) === b.charCodeAt(length)) length++;
  return length;
}

customElements.define("message-body", MessageBody);

declare global {
  interface HTMLElementTagNameMap {
    "message-body": MessageBody;
  }
}
