import { describe, expect, test } from "vitest";
import { toFrame, toPrefix, toSuffix } from "../../src/text/frame.ts";
import { UNITS } from "../support/markdown.ts";

const ofChars = (maxLength: number) => ({ maxLength, lengthOf: UNITS.utf16 });
const fence = { marker: "```", indent: "  ", info: "typescript" };
const place = { at: 0, header: "| a |\n|---|\n", quote: "> ", midLine: false, frame: undefined };

describe("the frame that reopens a part", () => {
  test("toFrame reopens a fence as it was", () => {
    expect(toFrame(fence, ofChars(100))).toEqual({ fence, open: "  ```typescript", close: "  ```" });
  });

  test("toFrame drops an info string that takes more than half of a part", () => {
    expect(toFrame(fence, ofChars(40)).open).toBe("  ```");
  });

  test("toFrame writes nothing if it leaves no room for code", () => {
    expect(toFrame(fence, ofChars(14))).toEqual({ fence, open: "", close: "" });
  });
});

describe("the text before a part", () => {
  test("toPrefix repeats a table's header and quote marks, and reopens a fence", () => {
    expect(toPrefix(place)).toBe("| a |\n|---|\n");
    expect(toPrefix({ ...place, midLine: true })).toBe("> ");
    expect(toPrefix({ ...place, frame: toFrame(fence, ofChars(100)) })).toBe("  ```typescript\n");
  });
});

test("toSuffix closes the fence that is open", () => {
  expect(toSuffix(undefined)).toBe("");
  expect(toSuffix(toFrame(fence, ofChars(100)))).toBe("\n  ```");
  expect(toSuffix(toFrame(fence, ofChars(14)))).toBe("");
});
