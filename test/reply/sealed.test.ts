import { describe, expect, test } from "vitest";
import { findEndOf, findPlaceBehind, toTextMark } from "../../src/reply/sealed.ts";
import { healMarkdown } from "../../src/text/heal.ts";
import { splitMarkdown } from "../../src/text/split.ts";

const LIMITS = { maxLength: 200, lengthOf: (text: string) => text.length };

/** What a draft of a growing text leaves to be shown behind it. */
function restOf(text: string, index = 0): string {
  const part = splitMarkdown(text, LIMITS)[index];
  if (part === undefined) throw new Error("There is no such part.");
  const source = part.text.slice(0, part.text.length - part.closingLength);
  const draft = { markdown: healMarkdown(part.text), source, buttons: [], streaming: true };
  return text.slice(findEndOf(draft, part, text), part.end);
}

describe("the end of what a message shows", () => {
  test.each([
    ["One, two", ""],
    ["One, **two", ""],
    ["One, two\n\n- ", "\n\n- "],
    ["ha ha ha ha ha ha", ""],
    ["```ts\nconst a = 1;\nconst b", ""],
  ])("of %j leaves %j", (text, rest) => {
    expect(restOf(text)).toBe(rest);
  });

  test("is found in a later message, also inside code", () => {
    const text = `\`\`\`ts\n${"const a = 1;\n".repeat(30)}const b = 2;`;
    for (const index of splitMarkdown(text, LIMITS).keys()) expect(restOf(text, index).trim()).toBe("");
  });
});

describe("the place behind what messages show", () => {
  test("is in the same text only", () => {
    const sealed = { shown: 3, mark: toTextMark("One") };
    expect(findPlaceBehind("One, two", sealed)).toBe(3);
    expect(findPlaceBehind("On", sealed)).toBe(0);
    expect(findPlaceBehind("Uno, dos", sealed)).toBe(0);
  });
});
