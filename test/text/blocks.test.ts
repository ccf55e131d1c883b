import { describe, expect, test } from "vitest";
import { isDelimiterRow, readFence, readFenceLine, readLineKind, readQuote } from "../../src/text/blocks.ts";

describe("the reading of a code fence", () => {
  test.each([
    ["```js", { marker: "```", indent: "", info: "js" }],
    ["  ~~~~ a b", { marker: "~~~~", indent: "  ", info: "a b" }],
    ["- 1. ```sh", { marker: "```", indent: "     ", info: "sh" }],
    ["> > ```", { marker: "```", indent: "> > ", info: "" }],
  ])("readFence reads %j", (line, fence) => expect(readFence(line)).toEqual(fence));

  test.each(["``", "```a```", "a ```", "~~x~~", ""])("readFence does not accept %j", (line) =>
    expect(readFence(line)).toBeUndefined(),
  );
});

describe("the reading of a line in a code fence", () => {
  const fence = { marker: "```", indent: "  ", info: "" };

  test.each([
    ["```\n", "closing"],
    ["     ````  \nmore", "closing"],
    ["      ```\n", "content"],
    ["``\n", "content"],
    ["~~~\n", "content"],
    ["```js\n", "content"],
    ["> ```\n", "content"],
    ["``", "undecided"],
    ["```  ", "undecided"],
    ["``x", "content"],
  ])("readFenceLine reads the line %j as: %s", (text, kind) => expect(readFenceLine(text, 0, fence).kind).toBe(kind));
});

describe("the kind of a line", () => {
  test.each([
    ["## Title", "heading"],
    ["#hashtag", "text"],
    ["- - -", "rule"],
    ["- item", "item"],
    ["12. item", "item"],
    ["> - item", "item"],
    ["| a |", "row"],
    ["2024 was", "text"],
  ])("readLineKind takes %j for a %s", (line, kind) => expect(readLineKind(line)).toBe(kind));
});

test("isDelimiterRow recognises the row under a table's header", () => {
  expect(["|---|:-:|", "| - | - |"].every(isDelimiterRow)).toBe(true);
  expect(["---", "|===|", "| a |"].some(isDelimiterRow)).toBe(false);
});

test("readQuote reads quote marks that are not too long", () => {
  expect(readQuote("> > text", 10)).toBe("> > ");
  expect(readQuote("> > text", 3)).toBe("");
  expect(readQuote("text > text", 10)).toBe("");
});
