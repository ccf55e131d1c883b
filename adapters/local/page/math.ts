import type { MarkedExtension, Tokens } from "marked";

interface MathToken extends Tokens.Generic {
  tex: string;
  isDisplay: boolean;
}

const BLOCK = /^(?:\$\$([^$]{1,5000})\$\$|\\\[([\s\S]{1,5000}?)\\\])[ \t]*(?:\n|$)/;
const DISPLAY = /^\$\$([^$\n]{1,2000})\$\$/;
const PARENTHESES = /^\\\(((?:\\[^)\n]|[^\\\n]){1,2000}?)\\\)/;
/** Pandoc's rules keep prices from being formulas: no space inside the signs, no digit after the second, no code. */
const DOLLARS = /^\$(?!\s)((?:\\[^\n]|[^\\$\n`]){1,2000})(?<!\s)\$(?!\d)/;
/** Keeps a formula from growing without end or covering the page. */
const BOUNDS = { maxExpand: 200, maxSize: 20, trust: false, strict: "ignore", throwOnError: false } as const;
/**
 * Maximum depth of elements in a drawn formula; an exponent takes seven. Chromium 156 crashes the tab on 150 nested
 * exponents but draws 100 (reproduced on 2026-11-23).
 */
const MAX_DEPTH = 200;

/** Reads the formulas `$…$`, `$$…$$`, `\(…\)` and `\[…\]` in Markdown. `drawMath` draws them later. */
export function createMath(escapeHtml: (text: string) => string): MarkedExtension {
  const renderer = (token: Tokens.Generic) => {
    const { tex, raw, isDisplay } = token as MathToken;
    const [tag, look] = isDisplay ? ["div", "math display"] : ["span", "math"];
    return `<${tag} class="${look}" data-tex="${escapeHtml(tex)}">${escapeHtml(raw.trim())}</${tag}>`;
  };
  const toToken = (type: string, found: RegExpExecArray | null, isDisplay: boolean): MathToken | undefined => {
    const tex = found?.slice(1).find((part) => part !== undefined);
    if (found === null || tex === undefined || tex.trim() === "") return undefined;
    return { type, raw: found[0], tex: tex.trim(), isDisplay };
  };
  const indexOf = (source: string, sign: RegExp) => sign.exec(source)?.index;
  return {
    extensions: [
      {
        name: "mathBlock",
        level: "block",
        start: (source) => indexOf(source, /^(?:\$\$|\\\[)/m),
        tokenizer: (source) => toToken("mathBlock", BLOCK.exec(source), true),
        renderer,
      },
      {
        name: "math",
        level: "inline",
        start: (source) => indexOf(source, /\$|\\\(/),
        tokenizer: (source) =>
          toToken("math", DISPLAY.exec(source), false) ??
          toToken("math", PARENTHESES.exec(source) ?? DOLLARS.exec(source), false),
        renderer,
      },
    ],
  };
}

type Katex = typeof import("katex").default;

let katex: Katex | undefined;
let loading: Promise<void> | undefined;

/** The first formula loads the library and its fonts. Until then the page shows the TeX. */
export function drawMath(block: HTMLElement): void {
  const formulas = block.querySelectorAll<HTMLElement>(".math");
  if (formulas.length === 0) return;
  if (katex !== undefined) {
    for (const formula of formulas) draw(formula, katex);
    return;
  }
  loading ??= load();
  // Without the library, the TeX stays visible.
  loading.then(() => drawMath(block)).catch(() => undefined);
}

function draw(formula: HTMLElement, { render }: Katex): void {
  const drawn = document.createElement("span");
  try {
    render(formula.dataset["tex"] ?? "", drawn, { ...BOUNDS, displayMode: formula.classList.contains("display") });
  } catch {
    // Leaves the TeX as it is: parsing such deep nesting overflows the stack.
    return;
  }
  if (!isDeeper(drawn, MAX_DEPTH)) formula.replaceChildren(...drawn.childNodes);
}

function isDeeper(root: Element, most: number): boolean {
  let level = [root];
  for (let depth = 0; depth <= most; depth++) {
    level = level.flatMap(({ children }) => [...children]);
    if (level.length === 0) return false;
  }
  return true;
}

async function load(): Promise<void> {
  const look = document.createElement("link");
  look.rel = "stylesheet";
  look.href = "/assets/vendor/katex/dist/katex.min.css";
  document.head.append(look);
  try {
    ({ default: katex } = await import("katex"));
  } catch (error) {
    loading = undefined;
    throw error;
  }
}
