import { toBoundary } from "./format.ts";
import { type Block, toBlocks, toPlainBlock, toShowable } from "./markdown.ts";

export interface BodyContent {
  text: string;
  /** More is coming: the text grows smoothly and ends in a caret. */
  isStreaming: boolean;
  names: readonly string[];
  /** Formulas stay as they were written. */
  keepsTex?: boolean;
}

/** A jump in the text is spread over about this time, so that it grows instead of jumping. */
const SPREAD_MS = 350;
const MIN_CHARS_PER_MS = 0.12;
/** The time for which a button says that it copied. */
const COPIED_MS = 1500;
const STILL = matchMedia("(prefers-reduced-motion: reduce)");

/**
 * Text of one message. Draws only the blocks that have changed, so a long answer costs as much
 * per step as its last paragraph, and a code block keeps its scroll position while it grows.
 */
class MessageBody extends HTMLElement {
  #content: BodyContent = { text: "", isStreaming: false, names: [] };
  #blocks: { key: string; element: HTMLElement }[] = [];
  /** UTF-16 units of the text that are shown. */
  #shown = 0;
  #frame = 0;
  #lastFrameAt = 0;
  #isFirst = true;

  set content(content: BodyContent) {
    const { text, isStreaming, names } = this.#content;
    const isSame = text === content.text && isStreaming === content.isStreaming;
    if (isSame && names.length === content.names.length && !this.#isFirst) return;
    this.#shown = Math.min(this.#shown, commonLength(text, content.text));
    // Text from before the page was opened does not grow again.
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
    const { text, isStreaming, names, keepsTex = false } = this.#content;
    const isGrowing = isStreaming || this.#shown < text.length;
    const shown = isGrowing ? text.slice(0, this.#shown) : text;
    try {
      this.#place(toBlocks(isGrowing ? toShowable(shown) : shown, names, keepsTex));
    } catch {
      // Marks that are nested too deep overflow the stack, and one message must not keep the others from being shown.
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

/** A code block only gets its lines exchanged: replacing the box would throw away how far it is scrolled. */
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

/** The innermost element that the text ends in. */
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
    // After a list inside an item comes the item's own text.
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

/** Resolves to whether the browser let the text onto the clipboard. */
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
