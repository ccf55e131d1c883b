import { describe, expect, test } from "vitest";
import { scanInline } from "../../src/text/inline.ts";

const open = (text: string, growing = false) =>
  scanInline(text, 0, text.length, growing).open.map(({ kind, start, length }) => [kind, start, length]);
const hard = (text: string): string[] =>
  scanInline(text, 0, text.length, false)
    .spans.filter((span) => !span.soft)
    .map(({ start, end }) => text.slice(start, end));

describe("scanInline", () => {
  test("scanInline finds elements that a split would break", () => {
    expect(hard('a <@12|b c> `d` [e](f "g") h://x https://i.j/k. <t:1:R> &lt; \\* ![l](m)')).toEqual([
      "<@12|b c>",
      "`d`",
      '[e](f "g")',
      "https://i.j/k",
      "<t:1:R>",
      "&lt;",
      "\\*",
      "![l](m)",
    ]);
  });

  test("scanInline excludes emphasis marks and the surrounding parenthesis from an address", () => {
    expect(hard("(https://a.b/c) **https://d.e** https://f.g/h_(i)")).toEqual([
      "https://a.b/c",
      "https://d.e",
      "https://f.g/h_(i)",
    ]);
  });

  test("scanInline finds no marks in code and no emphasis inside words", () => {
    expect(open("`a **b` c_d_e 2 * 3 ``x ` y``")).toEqual([]);
  });

  test("scanInline lists the elements that are still open at the end, outermost first", () => {
    expect(open("**a *b ~~c `d")).toEqual([
      ["*", 0, 2],
      ["*", 4, 1],
      ["~", 7, 2],
      ["code", 11, 1],
    ]);
    expect(open("see [a link](https://a")).toEqual([["target", 4, 7]]);
    expect(open("see [a ![b")).toEqual([
      ["text", 4, 1],
      ["text", 7, 1],
    ]);
    expect(open("hello <@12")).toEqual([["angle", 6, 4]]);
  });

  test("scanInline treats an element at the end of a growing text as open", () => {
    expect(open("`a`")).toEqual([]);
    expect(open("`a`", true)).toEqual([["code", 0, 1]]);
    expect(open("[a]")).toEqual([]);
    expect(open("[a]", true)).toEqual([["text", 0, 1]]);
  });

  test("scanInline finds no element beyond its block", () => {
    expect(scanInline("`a `b` c`", 3, 6, false).spans).toEqual([{ start: 3, end: 6, soft: false }]);
  });
});
