import { describe, expect, test } from "vitest";
import { readTable } from "../../../../adapters/discord/write/markdown-table.ts";
import { widthOf } from "../../../../adapters/discord/write/width.ts";

function show(markdown: string): string | undefined {
  return readTable(markdown.split("\n"), 0)?.shown;
}

describe("a table", () => {
  test("becomes columns that line up, also where letters are twice as wide", () => {
    expect(show("| 名前 | n |\n|:--|--:|\n| 太郎 | 12 |\n| Ann | 3 |")).toBe(
      ["```", "名前 │  n", "─────┼───", "太郎 │ 12", "Ann  │  3", "```"].join("\n"),
    );
  });

  test("aligns to the right and to the middle as its row of dashes says", () => {
    expect(show("a | b | c\n:-- | :-: | --:\nlong | long | long")).toBe(
      ["```", "a    │  b   │    c", "─────┼──────┼─────", "long │ long │ long", "```"].join("\n"),
    );
  });

  test("loses the marks that code would show as letters, and keeps what they are around", () => {
    const shown = show("| **bold** and *it* | `code` |\n|---|---|\n| [docs](https://a.example/x) | a \\| b<br>c |");
    expect(shown).toContain("bold and it");
    expect(shown).toContain("docs (https://a.example/x) │ a | b c");
    expect(shown).not.toMatch(/\*\*|`code`|<br>/);
  });

  test("wraps long cells inside their column", () => {
    const shown = show(`| key | words |\n|---|---|\n| a | ${"lorem ipsum ".repeat(20)} |`) ?? "";
    const lines = shown.split("\n");
    expect(lines.length).toBeGreaterThan(6);
    for (const line of lines) expect(widthOf(line)).toBeLessThanOrEqual(100);
    expect(shown.match(/lorem/g)).toHaveLength(20);
  });

  test("cannot end its own block of code", () => {
    expect(show("| a |\n|---|\n| ``` |")?.match(/```/g)).toHaveLength(2);
  });

  test("keeps cells that have no column in the last one", () => {
    expect(show("| a | b |\n|---|---|\n| 1 | 2 | 3 | 4 |")).toContain("1 │ 2 | 3 | 4");
  });

  test("takes missing cells for empty, and ends with the first line that is no row", () => {
    expect(readTable(["| a | b |", "|---|---|", "| 1 |", "text"], 0)).toMatchObject({ count: 3 });
    expect(readTable(["| a | b |", "|---|---|", "```js | x"], 0)).toMatchObject({ count: 2 });
  });

  test("is none without its row of dashes", () => {
    expect(show("| a | b |\n| c | d |")).toBeUndefined();
    expect(show("a | b\n---")).toBeUndefined();
    expect(show("| a | b |\n|---|")).toBeUndefined();
  });
});
