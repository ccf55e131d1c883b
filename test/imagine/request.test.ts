import { describe, expect, test } from "vitest";
import { describeProblems, readImagineRequest, toNextSize } from "../../src/imagine/request.ts";

const read = (text: string, options = {}) => readImagineRequest(text, options);
const requestOf = (text: string, options = {}) => read(text, options).request;

describe("an image request", () => {
  test("an image request without options is the text alone", () => {
    expect(read("  a red house\non a hill ")).toEqual({
      request: { prompt: "a red house\non a hill", count: 1, isSpoiler: false },
      problems: [],
    });
  });

  test.each([
    ["a fox --ar 16:9", { ratio: "16:9" }],
    ["--ar=16x9 a fox", { ratio: "16:9" }],
    ["a --ratio 3/4 fox", { ratio: "3:4" }],
    ["a fox —ar 21:9", { ratio: "21:9" }],
    ["a fox --size 2k", { size: "2K" }],
    ["a fox --count 3", { count: 3 }],
    ["a fox --n 4", { count: 4 }],
    ["a fox --model Painter-2", { model: "Painter-2" }],
    ["a --spoiler fox", { isSpoiler: true }],
    ["a fox --spoiler --AR 1:1", { isSpoiler: true, ratio: "1:1" }],
  ])("an image request takes its options from %j", (text, expected) => {
    const { request, problems } = read(text);
    expect(request).toEqual({ prompt: "a fox", count: 1, isSpoiler: false, ...expected });
    expect(problems).toEqual([]);
  });

  test("an image request keeps dashes that are not options", () => {
    const text = "a fox —sleeping— on a well-made bed - or -- not";
    expect(read(text)).toMatchObject({ request: { prompt: text }, problems: [] });
  });

  test("an image request can come from the fields of a form, whose text takes precedence", () => {
    const options = { ratio: "9:16", size: "4K", count: "2", model: "", spoiler: "true", basis: "a.1" };
    expect(requestOf("a fox --ar 1:1", options)).toEqual({
      prompt: "a fox",
      ratio: "1:1",
      size: "4K",
      count: 2,
      isSpoiler: true,
      basis: "a.1",
    });
  });
});

describe("the problems of an image request", () => {
  test.each([
    ["", "describe the image"],
    ["--ar 16:9", "describe the image"],
    ["a fox --ar 16:10", "the ratio `16:10` is not one of 1:1, 16:9"],
    ["a fox --size 8K", "the size `8K` is not one of 1K, 2K, 4K"],
    ["a fox --n 0", "the count `0` is not a number from 1 to 4"],
    ["a fox --n many", "the count `many` is not a number from 1 to 4"],
    ["a fox --n", "`--n` needs a value"],
    ["a fox --stylize 50", "there is no option `--stylize`"],
    ["x".repeat(4_001), "the description is longer than 4000 characters"],
  ])("an image request reports the problem of %j", (text, problem) => {
    expect(read(text).problems).toEqual([expect.stringContaining(problem)]);
  });

  test("the list of problems is one sentence, has each problem once, and quotes names only as plain text", () => {
    expect(describeProblems(["a is `b`", "a is `b`", "c"])).toBe("I can't create that: a is `b`; c.");
    expect(read("a fox --ar `@everyone`").problems[0]).toContain("the ratio `'@everyone'` is not one");
  });
});

test("the button for a larger size grows until the largest size", () => {
  expect([undefined, "1K", "2K", "4K", "odd"].map(toNextSize)).toEqual(["2K", "2K", "4K", undefined, "1K"]);
});
