import { describe, expect, test } from "vitest";
import { splitMarkdown } from "../../src/text/split.ts";
import { UNITS } from "../support/markdown.ts";

const shown = (text: string, maxLength: number): string[] =>
  splitMarkdown(text, { maxLength, lengthOf: UNITS.utf16 }).map((part) => part.text);

describe("the end of a part of a split text", () => {
  test("a part ends before a heading rather than between paragraphs", () => {
    expect(shown("First paragraph here.\n\n## Title\n\nSome words.\n\nMore words.", 40)).toEqual([
      "First paragraph here.",
      "## Title\n\nSome words.\n\nMore words.",
    ]);
    expect(shown("A first paragraph, then more.\n\n# Title\n\nA.\n\nB and some more words.", 45)).toEqual([
      "A first paragraph, then more.",
      "# Title\n\nA.\n\nB and some more words.",
    ]);
  });

  test("a part ends between paragraphs rather than between sentences", () => {
    expect(shown("One sentence.\n\nTwo. Three. Four.", 27)).toEqual(["One sentence.", "Two. Three. Four."]);
  });

  test("a part never ends right after a heading", () => {
    expect(shown("Some words come first.\n\n# Title\n\nThen a paragraph follows.", 40)).toEqual([
      "Some words come first.",
      "# Title\n\nThen a paragraph follows.",
    ]);
  });

  test("a part ends between the items of a list", () => {
    expect(shown("- one item of a list\n- two items of it\n- three", 42)).toEqual([
      "- one item of a list\n- two items of it",
      "- three",
    ]);
  });

  test("a part ends between sentences rather than words, also in Japanese", () => {
    expect(shown("This is the first. This is the second one.", 30)).toEqual([
      "This is the first.",
      "This is the second one.",
    ]);
    expect(shown("これは最初の文章です。これは二番目の文章です。", 20)).toEqual([
      "これは最初の文章です。",
      "これは二番目の文章です。",
    ]);
    expect(shown("本当に？「はい。」そうですか！わかりました。では、また明日。", 20)).toEqual([
      "本当に？「はい。」そうですか！",
      "わかりました。では、また明日。",
    ]);
  });

  test("a part ends between words rather than inside one", () => {
    expect(shown("alpha beta gamma delta epsilon", 20)).toEqual(["alpha beta gamma", "delta epsilon"]);
  });

  test("a part ends between any two characters if it has no better place to end", () => {
    expect(shown("x".repeat(50), 20)).toEqual(["x".repeat(20), "x".repeat(20), "x".repeat(10)]);
    expect(shown("👩‍👩‍👧‍👦".repeat(4), 25)).toEqual(["👩‍👩‍👧‍👦👩‍👩‍👧‍👦", "👩‍👩‍👧‍👦👩‍👩‍👧‍👦"]);
    expect(shown("🇩🇪".repeat(10), 22)).toEqual(["🇩🇪".repeat(5), "🇩🇪".repeat(5)]);
  });

  test("a part ends inside a character only if the character is longer than a part", () => {
    const parts = shown(`a${"\u0301".repeat(50)}`, 20);
    expect(parts.map((part) => part.length)).toEqual([20, 20, 11]);
    expect(shown("😀".repeat(30), 21).every((part) => part.isWellFormed())).toBe(true);
  });

  test.each([
    "<@123456789>",
    "<@U123|a name>",
    "<!here>",
    "<:emoji:123>",
    "<t:1700000000:R>",
    "</command sub:123>",
    "`inline code`",
    "``with ` in it``",
    "[a link](https://a.ex)",
    "![a picture](b.png)",
    "[![a](b)](c)",
    "[text][reference]",
    "https://a.example/b?c",
    "<https://a.example/b>",
    "&amp;",
    "**bold words**",
    "~~gone words~~",
  ])("a part never ends inside %s, wherever it is", (atom) => {
    for (let before = 0; before < 30; before++) {
      const text = `${"w ".repeat(before)}${atom} and after it more words, up to the end.`;
      expect(shown(text, 28).filter((part) => part.includes(atom))).toHaveLength(1);
    }
  });

  test("a part ends inside a link that is too long, but not inside an element of the link", () => {
    const parts = shown("[see <@123456789> and `some code` there](https://a.example/long/path)", 30);
    expect(parts.join(" ")).toContain("<@123456789>");
    expect(parts.join(" ")).toContain("`some code`");
  });

  test("a part does not end if the next one would start like a heading, an item or a fence", () => {
    expect(shown("alpha beta gamma # delta", 17)).toEqual(["alpha beta", "gamma # delta"]);
    expect(shown("alpha beta gamma ``` delta", 18)).not.toContainEqual(expect.stringMatching(/^```/));
  });

  test("a part does not end before it is a third full, if more text can follow", () => {
    expect(shown(`Hi.\n\n${"word ".repeat(20)}`, 40)[0]?.length).toBeGreaterThan(30);
  });
});
