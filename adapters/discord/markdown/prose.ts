import { toHonestLink } from "./links.ts";

/** Code, addresses and escaped signs are not touched; the rest is what the other alternatives do not take. */
const PIECE =
  /(?<kept>\\[^\w\s]|(?<!`)(?<run>`+)(?!`)[\s\S]*?(?<!`)\k<run>(?!`)|<[^<>\s]+>)|(?<link>!?\[(?<words>(?:[^[\]\n]|\[[^[\]\n]*\])*)\]\((?<target><[^<>\n]*>|[^()\s]*(?:\([^()\s]*\)[^()\s]*)*)(?:[ \t]+"[^"\n]*")?\))|(?<address>https?:\/\/[^\s<>]+)|(?<bars>\|\|)|__(?=[^\s_])(?<bold>[^_\n]*(?:_[^_\n]+)*)(?<=[^\s_])__(?!\w)/g;

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
  const { kept, address, link, words = "", target = "", bars, bold } = groups;
  if (kept !== undefined || address !== undefined) return piece;
  if (link !== undefined) return toHonestLink(link, words, target.replace(/^<|>$/g, ""));
  // Two bars begin a spoiler, which would hide what stands between them and the next two.
  if (bars !== undefined) return "\\|\\|";
  // Two underscores underline.
  return bold === undefined ? piece : `**${bold}**`;
}
