import { type Fence, readFence, readFenceLine } from "../../../src/text/blocks.ts";
import { rewriteProse } from "./markdown-prose.ts";
import { readTable } from "./markdown-table.ts";

/** Keeps three backticks inside a block of code from ending it. */
const SPLIT_TICKS = "`\u200B``";
/** What a text must have of at least one kind for anything to be rewritten. */
const SPECIAL = /[|#>\]`~_*]|^[ \t]*(?:\+|[-*\d.]+[ \t]+\[)/m;

/** Markdown as models write it, in the Markdown that Discord shows. Half a table or a link is left as it is. */
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
    const block = fence === undefined ? readTable(lines, at) : readCode(lines, at, fence);
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
 * Length of a text as Discord shows it, or as it was written where that is longer. In UTF-16 units: Discord does not say
 * what it counts, and code points are never more.
 */
export function lengthOfMarkdown(markdown: string): number {
  return Math.max(markdown.length, toDiscordMarkdown(markdown).length);
}

/** Three backticks are the only fence that Discord knows, and one word after them the only information. */
function readCode(lines: readonly string[], at: number, fence: Fence): { count: number; shown: string } {
  const { indent, info } = fence;
  const language = /^[\w+#.-]+(?=\s|$)/.exec(info)?.[0] ?? "";
  const code: string[] = [];
  let count = 1;
  let isClosed = false;
  while (at + count < lines.length && !isClosed) {
    const line = lines[at + count] ?? "";
    // With a line feed behind it a line is certain to be what it looks like.
    isClosed = readFenceLine(`${line}\n`, 0, fence).kind === "closing";
    if (!isClosed) code.push(line.replaceAll("```", SPLIT_TICKS));
    count += 1;
  }
  const closing = isClosed ? [`${indent}\`\`\``] : [];
  return { count, shown: [`${indent}\`\`\`${language}`, ...code, ...closing].join("\n") };
}
