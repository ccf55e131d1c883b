import { toHonestLink } from "./markdown-links.ts";

/**
 * Code, addresses and escaped signs are not touched; the rest is what the other alternatives do not take. A link is
 * read as generously as Discord reads it, over the ends of lines and with room around its address, and within bounds
 * that keep a text of nothing but brackets cheap.
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
/** A line that is a block of its own: what begins in it ends with it, code too. */
const OWN_BLOCK = /^[ \t]*(?:>|#{1,3}[ \t]|-#[ \t]|[-*+][ \t]|\d{1,9}\.[ \t])[^\n]*$/;

/** Rewrites Markdown outside of code and tables as Discord reads it. */
export function rewriteProse(text: string): string {
  return text.split("\n").map(rewriteLineStart).join("\n").replace(PIECE, rewritePiece);
}

function rewriteLineStart(line: string): string {
  return (
    line
      // Deeper headings than three are not known.
      .replace(/^( {0,3})#{4,6}(?=[ \t])/, "$1###")
      // Three of them would quote everything that follows, two are not known.
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
    // What looks like code is none to Discord, and a link in it is a link.
    if (OWN_BLOCK.test(before)) return run + piece.slice(run.length).replace(PIECE, rewritePiece);
  }
  if (kept !== undefined || address !== undefined) return piece;
  if (link !== undefined) return toHonestLink(link, words, target.replace(/^<|>$/g, ""));
  // Two bars begin a spoiler, which would hide what stands between them and the next two.
  if (bars !== undefined) return "\\|\\|";
  // Two underscores underline.
  return bold === undefined ? piece : `**${bold}**`;
}
