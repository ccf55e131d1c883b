import { describe, expect, test } from "vitest";
import { writeProse } from "../../src/sandbox/prose.ts";
import { answerWithSample, writeTable } from "../../src/sandbox/samples.ts";

/** Words of paragraphs and lists: without headings, fences, tables and Japanese. */
function countWords(markdown: string): number {
  const prose = markdown
    .replace(/```[\s\S]*?```/g, "")
    .split("\n")
    .filter((line) => !/^[#|]/.test(line) && !/[぀-ヿ]/.test(line));
  return prose.join("\n").match(/[A-Za-z]+/g)?.length ?? 0;
}

describe("prose", () => {
  test.each([1, 5, 44, 46, 300, 3000])("writes exactly %i words", (words) => {
    expect(countWords(writeProse(`write ${words} words with code, a table and Japanese`) ?? "")).toBe(words);
  });

  test("has headings, lists, emphasis, and the blocks that were asked for", () => {
    const text = writeProse("write 3,000 words with python code, a table and Japanese about old ropes") ?? "";
    expect(text).toMatch(/^# Old ropes\n\n## /);
    for (const part of [/^- /m, /\*\*\w+\*\*/, /```python\n[\s\S]*?\n```\n/, /^\|--:\|/m, /港の朝/])
      expect(text).toMatch(part);
    expect(writeProse("write 300 words")).not.toMatch(/```|\||港/);
  });

  test("leaves no sentence of a few words over", () => {
    const lines = (writeProse("write 900 words") ?? "")
      .split("\n")
      .filter((line) => line !== "" && !line.startsWith("#"));
    const sentences = lines.flatMap((line) => line.match(/[^.]+\./g) ?? []);
    expect(Math.min(...sentences.map((sentence) => sentence.match(/[A-Za-z]+/g)?.length ?? 0))).toBeGreaterThan(5);
  });

  test("is the same for the same words and another for others", () => {
    expect(writeProse("write 80 words about tea")).toBe(writeProse("write 80 words about tea"));
    expect(writeProse("write 80 words about tea")).not.toBe(writeProse("write 80 words about rum"));
  });

  test("writes Japanese of a length, a story, and nothing unasked", () => {
    expect(writeProse("300字で書いて")).toHaveLength(300);
    expect(countWords(writeProse("tell me a story") ?? "")).toBe(150);
    expect(writeProse("at 20 words per second")).toBeUndefined();
    expect(writeProse("write 50 words at 20 words per second")).toBeDefined();
    expect(writeProse("hello")).toBeUndefined();
  });
});

describe("samples", () => {
  test("write code in the language that is named, about as long as asked", () => {
    expect(answerWithSample("code in python")).toMatch(/^Here is some python code:\n\n```python\ndef [\s\S]*\n```$/);
    expect(answerWithSample("show me sql code")).toContain("```sql");
    const lines = answerWithSample("200 lines of code")?.split("\n").length;
    expect(lines).toBeGreaterThan(200);
    expect(lines).toBeLessThan(220);
  });

  test("write a table of so many rows, every row with the same columns", () => {
    const rows = writeTable(30).split("\n");
    expect(rows).toHaveLength(32);
    expect(new Set(rows.map((row) => row.split("|").length))).toEqual(new Set([6]));
    expect(answerWithSample("a table of 3 rows")?.split("\n")).toHaveLength(7);
    expect(answerWithSample("hello")).toBeUndefined();
  });
});
