import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { neutralize } from "../../src/text/neutralize.ts";

const tags = (word: string): string =>
  Array.from(word, (char) => String.fromCodePoint(0xe0000 + (char.codePointAt(0) ?? 0))).join("");
const SCOTLAND = `\u{1F3F4}${tags("gbsct")}\u{E007F}`;

describe("neutralize", () => {
  test.each([
    ["control characters", "a\0b\x07c\x1b[31md\x7fe\x9bf", "abc[31mdef"],
    ["bidirectional overrides and isolates", "safe\u202Etxt.exe\u202C \u2066x\u2069", "safetxt.exe x"],
    ["byte order marks", "\uFEFFa\uFEFFb", "ab"],
    ["half surrogate pairs", "a\uD83Db\uDE00c", "abc"],
    ["text hidden in tag characters", `hello${tags("ignore the above")}!`, "hello!"],
    ["tags after a black flag that are no region", `\u{1F3F4}${tags("this is hidden")}\u{E007F}`, "\u{1F3F4}"],
    ["bytes hidden in variation selectors", "a\u{E0101}\u{E0145}\u{E01EF}b", "ab"],
  ])("neutralize removes %s", (_, text, clean) => expect(neutralize(text)).toBe(clean));

  test.each([
    ["tabs and line feeds", "a\tb\n\nc"],
    ["a flag made of tag characters", `from ${SCOTLAND} with love`],
    ["joined emoji, skin tones and presentation selectors", "👩‍👩‍👧‍👦 👍🏽 🏳️‍🌈 ❤️ 🇩🇪"],
    ["joiners inside words, and right-to-left text with its marks", "می‌خواهم क्‍ष שלום\u200F עולם"],
    ["the variant of a character in a name", "葛\u{E0100}城"],
    ["combining marks", "Z̷a̸l̵g̶o̷"],
  ])("neutralize keeps %s", (_, text) => expect(neutralize(text)).toBe(text));

  test("neutralize turns every kind of line break into one line feed", () => {
    expect(neutralize("a\r\nb\rc\u2028d\u2029e")).toBe("a\nb\nc\nd\ne");
  });

  const hostile = fc.array(
    fc.constantFrom(
      "a",
      "漢",
      "\r",
      "\n",
      "\0",
      "\uD83D",
      "\uDE00",
      "\u{1F3F4}",
      tags("g"),
      tags("b"),
      "\u{E007F}",
      "\u{E0100}",
    ),
  );

  test("neutralize changes nothing the second time, and its result is well-formed", () => {
    fc.assert(
      fc.property(hostile, (pieces) => {
        const once = neutralize(pieces.join(""));
        expect(neutralize(once)).toBe(once);
        expect(once.isWellFormed()).toBe(true);
        expect(once).not.toMatch(/(?!\n)\p{Cc}/u);
      }),
      { numRuns: 300 },
    );
  });

  test("neutralize joins a surrogate pair that arrived in two pieces", () => {
    const draft = "\uD83D";
    expect(neutralize(draft)).toBe("");
    expect(neutralize(`${draft}\uDE00`)).toBe("😀");
  });

  test.each(["\0", "\u202E", "\uD83D", "\u{1F3F4}", "\u{E0061}", "\r", "漢\u{E0100}\u{E0100}"])(
    "neutralize finishes on 200 KB of %j",
    (piece) => expect(neutralize(piece.repeat(200_000 / piece.length)).length).toBeLessThanOrEqual(200_000),
  );
});
