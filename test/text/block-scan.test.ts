import { describe, expect, test } from "vitest";
import { splitMarkdown } from "../../src/text/split.ts";
import { UNITS } from "../support/markdown.ts";

const shown = (text: string, maxLength: number): string[] =>
  splitMarkdown(text, { maxLength, lengthOf: UNITS.utf16 }).map((part) => part.text);

describe("a code fence in a split text", () => {
  test("the splitter closes a split fence and reopens it with its marker, indentation and info string", () => {
    expect(shown("```ts\none();\ntwo();\nthree();\n```", 26)).toEqual([
      "```ts\none();\ntwo();\n```",
      "```ts\nthree();\n```",
    ]);
    expect(shown("~~~~\n```\ninner\n```\n~~~~", 20)).toEqual(["~~~~\n```\ninner\n~~~~", "~~~~\n```\n~~~~"]);
    expect(shown("- item\n  ```sh\n  first one\n  second one\n  ```", 34)).toEqual([
      "- item\n  ```sh\n  first one\n  ```",
      "  ```sh\n  second one\n  ```",
    ]);
  });

  test("the splitter does not split a fence that fits whole, but starts it in the next part", () => {
    const code = "```\nlet a = 1;\nlet b = 2;\n```";
    expect(shown(`Some words before it.\n${code}\nAfter.`, 40)).toEqual(["Some words before it.", `${code}\nAfter.`]);
  });

  test("the splitter splits a fence if less than a third of a part would come before it", () => {
    const [first] = shown("Hi:\n```\nlet a = 1;\nlet b = 2;\nlet c = 3;\n```", 40);
    expect(first).toBe("Hi:\n```\nlet a = 1;\nlet b = 2;\n```");
  });

  test("the splitter splits a fence at an empty line if possible", () => {
    expect(shown("```\nfunction one();\n\nfunction two();\nend();\n```", 44)[0]).toBe("```\nfunction one();\n```");
  });

  test("the splitter does not show an incomplete closing line", () => {
    expect(shown("```js\nlet a;\n``", 40)).toEqual(["```js\nlet a;\n```"]);
    expect(shown("```js\nlet a;\n```", 40)).toEqual(["```js\nlet a;\n```"]);
  });

  test("a longer or indented closing line closes a fence", () => {
    expect(shown("```\ncode\n   `````\nafter", 40)).toEqual(["```\ncode\n   `````\nafter"]);
    expect(shown("```\n0123456789ab\n`````````\nafter", 20)).toEqual(["```\n0123456789ab\n```", "after"]);
  });

  test("a fence is not closed by a shorter run, another mark, or a line indented like code", () => {
    const code = "````\n```\n~~~~\n        ````\nx\n````";
    expect(shown(`${code}\nafter`, 100)).toEqual([`${code}\nafter`]);
    expect(shown("````\n```\nx\n", 100)).toEqual(["````\n```\nx\n````"]);
  });

  test("the splitter shows a fence whose opening line does not fit as plain text, within the limit", () => {
    const parts = shown(`\`\`\`${"info ".repeat(20)}\ncode();\n\`\`\`\nafter the code`, 30);
    expect(parts.every((part) => part.length <= 30)).toBe(true);
    expect(parts.join("\n")).toContain("code();");
  });
});

const HEADER = "| a | b |\n|---|---|";

test.each<[string, string, number, string[]]>([
  [
    "keeps a split fence in its quote",
    "> ```\n> first line\n> second line\n> ```\n\nAfter.",
    28,
    ["> ```\n> first line\n> ```", "> ```\n> second line\n> ```", "After."],
  ],
  [
    "ends a fence in a quote with the quote",
    `> \`\`\`\n> code\n\n${"plain words here ".repeat(3)}`,
    30,
    ["> ```\n> code", "plain words here plain words", "here plain words here"],
  ],
  ["closes a fence that is open at the end of the text", "Look:\n```js\nlet a;", 40, ["Look:\n```js\nlet a;\n```"]],
  [
    "splits a line of code that is too long, and continues the code",
    "```\n0123456789012345678901234\n```",
    20,
    ["```\n012345678901\n```", "```\n234567890123\n```", "```\n4\n```"],
  ],
  [
    "takes a fence in one line for inline code",
    "```not a fence``` and words that follow it",
    30,
    ["```not a fence``` and words", "that follow it"],
  ],
  [
    "does not separate a table from its header",
    `Words that come before it.\n\n${HEADER}\n| 1 | 2 |`,
    47,
    ["Words that come before it.", `${HEADER}\n| 1 | 2 |`],
  ],
])("the splitter %s", (_, text, maxLength, parts) => expect(shown(text, maxLength)).toEqual(parts));

describe("a table in a split text", () => {
  test("a split table repeats its header in the next part", () => {
    expect(shown(`${HEADER}\n| 1 | 2 |\n| 3 | 4 |\n| 5 | 6 |`, 80)).toHaveLength(1);
    expect(shown(`${HEADER}\n${"| 1 | 2 |\n".repeat(10)}`, 80)).toEqual([
      `${HEADER}\n${"| 1 | 2 |\n".repeat(6).trimEnd()}`,
      `${HEADER}\n${"| 1 | 2 |\n".repeat(4).trimEnd()}`,
    ]);
  });

  test("the next part does not repeat a table's header after the table, or if the header is long", () => {
    const long = `| ${"h".repeat(30)} | b |\n|---|---|`;
    expect(shown(`${HEADER}\n${"| 1 | 2 |\n".repeat(4)}\n${"words ".repeat(12)}`, 80)[1]).toMatch(/^words/);
    expect(shown(`${long}\n${"| 1 | 2 |\n".repeat(10)}`, 80)[1]).toMatch(/^\| 1 \| 2 \|/);
  });
});
