import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { widthOf, wrap } from "../../../../adapters/discord/write/width.ts";

describe("widthOf", () => {
  test("counts one column for a letter and two for CJK, Hangul, full-width forms and emoji", () => {
    expect(widthOf("abc é")).toBe(5);
    expect(widthOf("数据")).toBe(4);
    expect(widthOf("한글 カナ")).toBe(9);
    expect(widthOf("ＡＢ！")).toBe(6);
    expect(widthOf("🎉❤️👩‍👩‍👧")).toBe(6);
  });

  test("counts nothing for what is not seen", () => {
    expect(widthOf("e\u0301")).toBe(1);
    expect(widthOf("a\u200Bb")).toBe(2);
  });
});

describe("wrap", () => {
  test("breaks between words, and inside a word only when it is longer than a line", () => {
    expect(wrap("one two three", 7)).toEqual(["one two", "three"]);
    expect(wrap("a 数据数据数据", 6)).toEqual(["a", "数据数", "据数据"]);
  });

  test("keeps every letter and no line wider than it may be", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", maxLength: 80 }), fc.integer({ min: 2, max: 20 }), (text, width) => {
        const lines = wrap(text, width);
        expect(lines.join("").replace(/\s/g, "")).toBe(text.replace(/\s/g, ""));
        for (const line of lines)
          expect(widthOf(line)).toBeLessThanOrEqual(Math.max(width, widthOf(text) <= width ? width : 2));
      }),
    );
  });
});
