import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { lengthOfMarkdown, toDiscordMarkdown } from "../../../../adapters/discord/write/markdown.ts";
import { splitMarkdown } from "../../../../src/text/split.ts";

const PIECES = [
  "word ",
  "数据 ",
  "🎉 ",
  "\n",
  "\n\n",
  "| a | bb |\n|---|:-:|\n",
  "| **x** | long cell with words |\n",
  "|| ",
  "```js\n",
  "```\n",
  "~~~\n",
  "````md\n",
  "#### head\n",
  "[a.com](https://b.com) ",
  "__bold__ ",
  "`code || x` ",
  "> quote\n",
  "- [x] ",
];
const markdown = fc.array(fc.constantFrom(...PIECES), { maxLength: 60 }).map((pieces) => pieces.join(""));

describe("Markdown for Discord", () => {
  test("has tables as code, and text around them as it was", () => {
    expect(toDiscordMarkdown("before\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nafter")).toBe(
      "before\n\n```\na │ b\n──┼──\n1 │ 2\n```\n\nafter",
    );
  });

  test("has one kind of fence, with one word behind it", () => {
    expect(toDiscordMarkdown("~~~python title=x\nprint(1)\n~~~")).toBe("```python\nprint(1)\n```");
    expect(toDiscordMarkdown("````md\n```js\n```\n````")).toBe("```md\n`\u200B``js\n`\u200B``\n```");
    expect(toDiscordMarkdown("```{.weird}\nx\n```")).toBe("```\nx\n```");
  });

  test("leaves code as it was written", () => {
    const code = "```py\n#### not a heading\na || b\n| a | b |\n|---|---|\n__init__\n```";
    expect(toDiscordMarkdown(code)).toBe(code);
  });

  test("leaves plain text, half a table and half a fence alone", () => {
    for (const text of ["plain, 100 % fine.", "| a | b |", "```js\nlet x", "*half", "[half](https://a"])
      expect(toDiscordMarkdown(text)).toBe(text);
  });

  test("has no words of the text lost", () => {
    fc.assert(
      fc.property(markdown, (text) => {
        const words = (from: string) => from.match(/word|数据|🎉|long|cell|bold|code|quote|head/g) ?? [];
        expect(words(toDiscordMarkdown(text))).toEqual(words(text));
      }),
    );
  });

  test("is counted in UTF-16 units, as it is sent", () => {
    expect(lengthOfMarkdown("a数🎉")).toBe(4);
    expect(lengthOfMarkdown("x".repeat(2_000))).toBe(2_000);
    expect(lengthOfMarkdown("a || b")).toBe(8);
    fc.assert(
      fc.property(markdown, (text) => {
        expect(lengthOfMarkdown(text)).toBeGreaterThanOrEqual(toDiscordMarkdown(text).length);
        expect(lengthOfMarkdown(text)).toBeGreaterThanOrEqual(text.length);
      }),
    );
  });

  test("fits, part by part, when the splitter is given its length", () => {
    fc.assert(
      fc.property(markdown, (text) => {
        const parts = splitMarkdown(text.repeat(3), { maxLength: 200, lengthOf: lengthOfMarkdown });
        for (const { text: part } of parts) expect(toDiscordMarkdown(part).length).toBeLessThanOrEqual(200);
      }),
    );
  });
});
