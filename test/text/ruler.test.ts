import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createRuler, nextCodePoint } from "../../src/text/ruler.ts";
import { UNITS } from "../support/markdown.ts";

describe("createRuler", () => {
  test("the ruler finds the longest prefix that fits, in any unit, without splitting a code point", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "grapheme", minLength: 1, maxLength: 200 }),
        fc.constantFrom(...Object.values(UNITS)),
        fc.integer({ min: 8, max: 60 }),
        (text, lengthOf, maxLength) => {
          const end = createRuler(text, 0, "```\n", { maxLength, lengthOf })("");
          const room = maxLength - 4;
          const isFirst = end === nextCodePoint(text, 0);
          expect(text.slice(0, end).isWellFormed()).toBe(true);
          expect(isFirst || lengthOf(text.slice(0, end)) <= room).toBe(true);
          expect(end === text.length || lengthOf(text.slice(0, nextCodePoint(text, end))) > room).toBe(true);
        },
      ),
    );
  });

  test("the ruler reserves room for a suffix", () => {
    const ruler = createRuler("x".repeat(100), 10, "ab", { maxLength: 20, lengthOf: UNITS.utf16 });
    expect([ruler(""), ruler("cde")]).toEqual([28, 25]);
  });

  test("the ruler advances by a code point even if none fits", () => {
    expect(createRuler("😀😀", 0, "", { maxLength: 3, lengthOf: UNITS.utf8Bytes })("")).toBe(2);
  });
});
