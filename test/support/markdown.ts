import fc from "fast-check";
import type { SplitLimits } from "../../src/text/ruler.ts";
import type { Part } from "../../src/text/split.ts";

/** The units in which platforms count. */
export const UNITS = {
  utf16: (text: string): number => text.length,
  codePoints: (text: string): number => Array.from(text).length,
  utf8Bytes: (text: string): number => Buffer.byteLength(text),
};

/** Pieces that are never split unless one is too long for a part. Each is unique, so that tests can find it again. */
const ATOM =
  /<@\d+>|<@U\d+\|[a-z ]+>|<#C\d+>|<!here>|<:\w+:\d+>|<t:\d+:R>|!?\[[^[\]`]*\]\([^() ]*\)|(?<![A-Za-z0-9])https:\/\/[\w./?=&-]*[\w/]|(?<!`)`[^`\n]+`(?!`)|``[^`\n]+`[^`\n]*``(?!`)/g;

const WORDS =
  "a word answer considerable naïve 日本語の文章。 これは、長い 😀 👩‍👩‍👧‍👦 🏳️‍🌈 🇩🇪🇫🇷 é e\u0301\u0302 नमस्ते 각 2*3 snake_case it's. done. Really? " +
  "yes! C# a&amp;b \\* \\\\ x\u0308y (so) [1] [ ] * _ ` | <";
const ATOMS = [
  "<@123456>",
  "<@U12|some name>",
  "<#C99>",
  "<!here>",
  "<:emoji:1>",
  "<t:1700000000:R>",
  "`code`",
  "`a b c`",
  "``a ` b``",
  "[a link](https://a.example/b)",
  "![alt](https://a.example/b.png)",
  "https://a.example/path?q=1&r=2",
  "[x y z](y)",
  "**bold words here**",
  "*it is*",
  "~~gone~~",
];
const CODE =
  "const a = 1;\n  return await something(very, long);\n\n\treturn;\n# comment\n> quoted\n| pipe |\n`tick`\n``\n    ```\n~~";
const word = fc.constantFrom(...WORDS.split(" "));
const atom = fc.constantFrom(...ATOMS);
const inline = fc
  .array(fc.oneof({ weight: 5, arbitrary: word }, { weight: 2, arbitrary: atom }), { minLength: 1, maxLength: 30 })
  .chain((words) => fc.constantFrom(" ", " ", "").map((glue) => words.join(glue)));
const codeLine = fc.constantFrom(...CODE.split("\n"), "日本語", "x".repeat(57));
const fence = fc
  .record({
    marker: fc.constantFrom("```", "````", "~~~", "`````"),
    indent: fc.constantFrom("", "", "  ", "    ", "- ", "> "),
    info: fc.constantFrom("", "ts", "python", "text title=x"),
    lines: fc.array(codeLine, { maxLength: 12 }),
    closing: fc.constantFrom("same", "same", "same", "longer", "indented", "none"),
  })
  .map(({ marker, indent, info, lines, closing }) => {
    const lead = indent.replace("-", " ");
    const last = { same: marker, longer: `${marker}${marker[0]}`, indented: `  ${marker}`, none: "" }[closing];
    return [
      `${indent}${marker}${info}`,
      ...[...lines, last].map((line) => (line === "" ? lead.trimEnd() : lead + line)),
    ].join("\n");
  });
const table = fc
  .array(fc.array(fc.constantFrom("a", "long cell", "1", "`x`", "日本"), { minLength: 2, maxLength: 2 }), {
    maxLength: 12,
  })
  .map((rows) => ["| h | i |", "|---|---|", ...rows.map((cells) => `| ${cells.join(" | ")} |`)].join("\n"));
const list = fc
  .array(fc.tuple(fc.constantFrom("- ", "  - ", "1. ", "* ", "- [ ] "), inline), { minLength: 1, maxLength: 8 })
  .map((items) => items.map(([mark, text]) => mark + text).join("\n"));
const block = fc.oneof(
  { weight: 4, arbitrary: inline },
  { weight: 2, arbitrary: fence },
  {
    weight: 1,
    arbitrary: fc.oneof(
      table,
      list,
      inline.map((text) => `## ${text}`),
      inline.map((text) => `> ${text}`),
    ),
  },
  { weight: 1, arbitrary: fc.constantFrom("---", "   ", "\t", "Title\n===", "") },
);

/** Text as models write it, and texts that are worse. */
export const markdown = fc
  .array(fc.tuple(block, fc.constantFrom("\n\n", "\n\n", "\n", "\n\n\n \n")), { minLength: 1, maxLength: 8 })
  .map((blocks) => blocks.map(([text, gap]) => text + gap).join(""));

/** True if every opened fence is closed, or ends with its quote. */
export function isBalanced(text: string): boolean {
  const open = openFence(text);
  return open === undefined || open.lead.includes(">");
}

function openFence(text: string): { marker: string; lead: string } | undefined {
  let open: { marker: string; lead: string } | undefined;
  for (const line of text.split("\n")) {
    const lead = /^(?:[ \t>]|(?:[-*+]|\d+[.)])[ \t])*/.exec(line)?.[0] ?? "";
    const marker = /^(?:`{3,}|~{3,})/.exec(line.slice(lead.length))?.[0];
    const info = line.slice(lead.length + (marker?.length ?? 0));
    if (open?.lead.includes(">") && !line.trim().startsWith(">") && line.trim() !== "") open = undefined;
    if (open !== undefined) {
      const closes = marker !== undefined && marker.startsWith(open.marker) && info.trim() === "";
      const inPlace = lead.length <= open.lead.length + 3 && !/[-*+\d]/.test(lead);
      if (closes && inPlace && (open.lead.includes(">") || !lead.includes(">"))) open = undefined;
    } else if (marker !== undefined && !(marker.startsWith("`") && info.includes("`"))) {
      open = { marker, lead };
    }
  }
  return open;
}

/** Describes each guarantee of the splitter that these parts violate. */
export function misfits(text: string, parts: Part[], { maxLength, lengthOf }: SplitLimits): string[] {
  const found: string[] = [];
  if (parts.map(({ start, end }) => text.slice(start, end)).join("") !== text)
    found.push("the ranges are not the text");
  // If a fence leaves too little room for its code, it is not opened again.
  const fenceLines = text.split("\n").filter((line) => /^[ \t>*+\d.)-]*(?:```|~~~)/.test(line));
  const fencesFit = fenceLines.every((line) => lengthOf(line) * 2 + 6 <= maxLength);
  const characters = new Intl.Segmenter("en").segment(text);
  for (const [index, part] of parts.entries()) {
    const source = text.slice(part.start, part.end).trim();
    if (lengthOf(part.text) > maxLength) found.push(`part ${index} is too long`);
    if (source !== "" && part.text.trim() === "") found.push(`part ${index} is empty`);
    const rest = source.replace(/\n[ \t>]*[`~]+$/, "").trim();
    if (!part.text.includes(source) && !part.text.includes(rest))
      found.push(`part ${index} lost ${JSON.stringify(source)}`);
    // A line that was split can look like an opening fence.
    const isOpen = !isBalanced(part.text) && !isBalanced(part.text.replace(/.*$/, ""));
    if (isOpen && fencesFit) found.push(`part ${index} leaves a fence open: ${part.text}`);
    const character = characters.containing(part.start);
    const isCut = character !== undefined && character.index !== part.start;
    if (isCut && lengthOf(character.segment) * 2 <= maxLength && maxLength >= 40)
      found.push(`part ${index} begins inside a character`);
    if (!part.text.isWellFormed()) found.push(`part ${index} has half a surrogate pair`);
  }
  return fencesFit ? [...found, ...cutAtoms(text, parts, maxLength, lengthOf)] : found;
}

function cutAtoms(text: string, parts: Part[], maxLength: number, lengthOf: (text: string) => number): string[] {
  const found: string[] = [];
  // Half of a split code's marks remain, and these can pair with others.
  if (text.match(ATOM)?.some((atom) => atom.includes("`") && lengthOf(atom) * 2 > maxLength)) return [];
  for (const line of text.matchAll(/^.*$/gm)) {
    // If the end of a URL runs into the next word, it is ambiguous.
    if (/https:[\w./?=&-]*[^\w./?=&\s)<-]/.test(line[0])) continue;
    if (openFence(text.slice(0, line.index)) !== undefined || openFence(line[0]) !== undefined) continue;
    // A lone mark can change the meaning of the text after it.
    if (/[`[\]<]/.test(text.replaceAll(ATOM, "").replaceAll(/^[ \t>-]*(?:`{3}|~{3}).*$/gm, ""))) continue;
    for (const { 0: atom, index } of line[0].matchAll(ATOM)) {
      const at = line.index + index;
      const cut = parts.find(({ start }) => start > at && start < at + atom.length);
      if (cut !== undefined && lengthOf(atom) * 2 <= maxLength) found.push(`${JSON.stringify(atom)} is cut`);
    }
  }
  return found;
}
