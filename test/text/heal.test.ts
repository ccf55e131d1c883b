import fc from "fast-check";
import type { Token, Tokens } from "marked";
import { Lexer } from "marked";
import { describe, expect, test } from "vitest";
import { HEAL_ROOM_UNITS, healMarkdown } from "../../src/text/heal.ts";
import { isBalanced, markdown } from "../support/markdown.ts";

/** Marks that a reader would see as characters, for a text in which no marks should be visible. */
function strayMarks(text: string): string[] {
  return leafTexts(new Lexer().lex(text)).flatMap((leaf) => leaf.match(/\*\*?|~~|`+|\]\(|!\[|\[/g) ?? []);
}

function leafTexts(tokens: Token[]): string[] {
  return tokens.flatMap((token): string[] => {
    if (token.type === "list") return leafTexts((token as Tokens.List).items);
    if (token.type === "table") {
      const { header, rows } = token as Tokens.Table;
      return [header, ...rows].flat().flatMap((cell) => leafTexts(cell.tokens));
    }
    if ("tokens" in token && token.tokens !== undefined) return leafTexts(token.tokens);
    return token.type === "text" ? [token.raw] : [];
  });
}

const CORPUS = [
  "Some **bold words** and *italic ones*, ***both***, `code here`, ``a ` in code``, ~~gone~~ and **bold with `code` and *more* in it**.",
  "See [the **docs**](https://a.example/b?c=d) and ![a picture](https://a.example/p.png), and [![badge](https://a.example/i)](https://a.example).",
  "# Title\n\nText:\n\n- one **bold**\n- two `code`\n  - three [link](https://a.example)\n\n1. first\n2. *second*\n\n> quoted **text** here\n\nEnd.",
  "Run this:\n\n```ts\nconst a = `x${b}`; // **not bold**\n```\n\nand then:\n\n~~~~\n```\ninner\n```\n~~~~\n\n- item\n  ```sh\n  ls *\n  ```\n\nDone.",
  "| name | **value** |\n| --- | --- |\n| `a` | *b* |\n| c | [d](https://a.example) |\n\nAfter the **table**.",
  "これは**太字**です。そして`コード`と*斜体*。😀 **👩‍👩‍👧‍👦** end.",
  "Read [https://a.example/b](https://a.example/b?c=d), **[https://c.example](https://c.example)** and [1] too.",
  "snake_case_name and 2 * 3 * 4 = 24, a_b, __strong__ and _emphasis_ and C# and 5 < 6 & 7.",
];

describe("healMarkdown", () => {
  for (const [index, text] of CORPUS.entries()) {
    test(`healMarkdown shows no incomplete mark while text ${index + 1} of the corpus grows`, () => {
      const allowed = strayMarks(text);
      for (let end = 0; end <= text.length; end++) {
        const healed = healMarkdown(text.slice(0, end));
        expect(isBalanced(healed), healed).toBe(true);
        expect(healed.length).toBeLessThanOrEqual(end + HEAL_ROOM_UNITS);
        // `[1]` may be plain text and not the start of a link, so bracketed text is shown until a URL follows.
        const marks = strayMarks(healed.replace(/\[(!\[.*\]\(.*\)|[^\]]*)\]([*\s|]*)$/, "$1$2"));
        for (const mark of marks) expect(allowed, JSON.stringify(healed)).toContain(mark);
      }
    });

    test(`healMarkdown leaves text ${index + 1} of the corpus unchanged once it is complete`, () => {
      expect(healMarkdown(text)).toBe(text);
      expect(healMarkdown(`${text}\n\n`)).toBe(`${text}\n\n`);
    });
  }

  test.each([
    ["**bold", "**bold**"],
    ["**bold*", "**bold**"],
    ["***both*", "***both***"],
    ["**bold ", "**bold**"],
    ["Hello **", "Hello"],
    ["a `code", "a `code`"],
    ["``a` b`", "``a` b``"],
    ["~~gone~", "~~gone~~"],
    ["a **b `c", "a **b `c`**"],
    ["see [the li", "see the li"],
    ["see [the link](https://a.ex", "see the link"],
    ["a picture: ![alt](https://a.ex", "a picture:"],
    ["thanks <@1234", "thanks"],
    ["**a\\", "**a**"],
    ["```js", ""],
    ["```js\nlet a;\n``", "```js\nlet a;\n```"],
    ["- a\n  ~~~\n  x", "- a\n  ~~~\n  x\n  ~~~"],
    ["Items:\n-", "Items:"],
    ["Items:\n1.", "Items:"],
    ["It says:\n>", "It says:"],
    ["| a | b |\n|---|", "| a | b |"],
    ["| a | b |\n|---|---|\n| 1 | **x", "| a | b |\n|---|---|\n| 1 | **x** |"],
    [`a ${"*".repeat(20)}b`, "a b"],
    [`a ${"`".repeat(20)}b`, "a b"],
    [`${"`".repeat(20)}\nlet a;`, "let a;"],
  ])("healMarkdown turns %j into %j", (half, healed) => expect(healMarkdown(half)).toBe(healed));

  test.each([
    "note*",
    "2 * 3",
    "a_b",
    "[1]",
    "- [ ] todo",
    "| x | y",
    "It is 5 > 4.",
    "|x| is positive",
    "a\n---",
    "why?!",
  ])("healMarkdown leaves %j unchanged", (text) => expect(healMarkdown(text)).toBe(text));

  test("healMarkdown stays within the length limit and leaves no fence open, for any truncated text", () => {
    fc.assert(
      fc.property(markdown, fc.nat(), (text, cut) => {
        const half = text.slice(0, cut % (text.length + 1));
        const healed = healMarkdown(half);
        expect(healed.length).toBeLessThanOrEqual(half.length + HEAL_ROOM_UNITS);
        expect(isBalanced(healed)).toBe(true);
      }),
      { numRuns: 200 },
    );
  });

  test.each(["*_~`", "[", "![a](", "**a _b ", "`", "<@", "(", "|", "\\", "```\n", "> "])(
    "healMarkdown finishes within its room on 200 KB of %j",
    (piece) => {
      const text = piece.repeat(200_000 / piece.length);
      expect(healMarkdown(text).length).toBeLessThanOrEqual(text.length + HEAL_ROOM_UNITS);
    },
  );
});
