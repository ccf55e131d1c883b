import { expect, test } from "vitest";
import { leaveOut } from "../../src/text/leave-out.ts";
import { quoteName } from "../../src/text/quote-name.ts";
import { toTitle } from "../../src/text/title.ts";
import { truncate } from "../../src/text/truncate.ts";

const FAMILY = "👨‍👩‍👧";
const FLAG = "🇩🇪";
const SKIN = "👍🏽";

test("truncate keeps a text that fits, and ends a longer one with its mark", () => {
  expect(truncate("abc", 3)).toBe("abc");
  expect(truncate("abcd", 3)).toBe("ab…");
  expect(truncate("abcdef", 4, "")).toBe("abcd");
});

test("truncate does not split a character of two units", () => {
  expect(truncate("a🦊🦊", 3)).toBe("a…");
  expect(truncate("a🦊🦊", 4)).toBe("a🦊…");
});

test.each([FAMILY, FLAG, SKIN, "e\u0301", "각", "葛\u{E0100}", "\r\n", "नि"])(
  "truncate, titles and omissions never end within the character %j",
  (character) => {
    const text = `ab${character.repeat(200)}`;
    for (let max = 3; max < Math.min(text.length, 400); max++) {
      const kept = truncate(text, max, "");
      expect(kept.length).toBeLessThanOrEqual(max);
      expect((kept.length - 2) % character.length).toBe(0);
      expect(max - kept.length).toBeLessThan(character.length);
      const [before = "", , after = ""] = leaveOut(text, max).split(/(\n\[… \d+ characters left out …\]\n)/);
      expect(text.startsWith(before) && text.endsWith(after)).toBe(true);
      expect([Math.max(before.length - 2, 0), after.length].map((length) => length % character.length)).toEqual([0, 0]);
    }
  },
);

test("truncate, titles and quoted names do not split a family emoji", () => {
  expect(toTitle(`${FAMILY}${FAMILY}`, 8)).toBe(`${FAMILY}…`);
  expect(quoteName(`${"x".repeat(95)}${FAMILY}`)).toBe(`\`${"x".repeat(95)}…\``);
});

test("truncate splits a letter with endless accents between two accents, and a long row of flags between two flags", () => {
  const zalgo = `z${"\u0301".repeat(100_000)}`;
  expect(truncate(zalgo, 50)).toBe(`z${"\u0301".repeat(48)}…`);
  for (const before of ["", "x", "🎉"]) {
    const flags = before + FLAG.repeat(100_000);
    expect(truncate(flags, 300_000, "")).toBe(
      flags.slice(0, before.length + Math.floor((300_000 - before.length) / 4) * 4),
    );
  }
});
