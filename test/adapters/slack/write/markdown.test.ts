import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  lengthOfMarkdown,
  MAX_LENGTH,
  toFallback,
  toSettledMarkdown,
  toSlackMarkdown,
} from "../../../../adapters/slack/write/markdown.ts";
import { pingsOf } from "../../../simulators/slack/pings.ts";
import { emptyContent } from "../../../simulators/slack/world.ts";

const PIECES = [
  "<",
  "!",
  "@",
  "#",
  "channel",
  "here",
  "everyone",
  "subteam^S0AB",
  "U0123",
  "W0",
  ">",
  "|name",
  "`",
  "\n\n",
  " ",
  "word",
  "é漢👩‍👩‍👧",
  "[",
  "](",
  "]",
  ")",
  ":",
  "\\",
  "``",
  "https://bank.com",
  "bank.com",
  "<https://evil.net",
  "<mailto",
  "(<https://bank.com/x y",
];
const hostile = fc.array(fc.constantFrom(...PIECES), { maxLength: 40 }).map((pieces) => pieces.join(""));
const LINKS = [
  "[bank.com",
  "](",
  "<",
  "https://evil.net",
  "https://bank.com",
  "|bank.com",
  ")",
  ">",
  " ",
  "\n",
  "`",
  "\\",
];
const linked = fc.array(fc.constantFrom(...LINKS), { maxLength: 12 }).map((pieces) => pieces.join(""));
const long = fc.array(fc.constantFrom(...PIECES), { minLength: 2_000, maxLength: 4_000 }).map((all) => all.join(""));

describe("Markdown for Slack", () => {
  test.each(["<!channel>", "<!here|here>", "<!everyone>", "<!subteam^S1|x>", "<@U0123>", "<@W0123|name>", "`<!here>`"])(
    "notifies nobody: %s",
    (markdown) => {
      expect(pingsOf(emptyContent({ markdown }))).not.toEqual([]);
      expect(pingsOf(emptyContent({ markdown: toSlackMarkdown(markdown) }))).toEqual([]);
    },
  );

  test.each(["<div>", "<!DOCTYPE html>", "<!-- note -->", "a < b", "List<@NonNull String>", "#include <stdio.h>"])(
    "leaves text that only looks like a mention: %s",
    (markdown) => expect(toSlackMarkdown(markdown).replace("<\u200B@N", "<@N")).toBe(markdown),
  );

  test("never notifies for any text, in the message and in the notification", () => {
    fc.assert(
      fc.property(hostile, (text) => {
        const content = emptyContent({ markdown: toSlackMarkdown(text), text: toFallback(text) });
        expect(pingsOf(content)).toEqual([]);
      }),
    );
  });

  test("that has settled stays the beginning of every longer text, also of the whole", () => {
    fc.assert(
      fc.property(hostile, hostile, (text, more) => {
        expect(toSlackMarkdown(text + more).startsWith(toSettledMarkdown(text))).toBe(true);
        expect(toSettledMarkdown(text + more).startsWith(toSettledMarkdown(text))).toBe(true);
      }),
    );
  });

  test("with links in it grows without taking anything back, letter by letter", () => {
    fc.assert(
      fc.property(linked, (text) => {
        const all = Array.from(text, (_, index) => toSettledMarkdown(text.slice(0, index + 1)));
        for (const [index, settled] of all.entries()) {
          expect(all[index + 1]?.startsWith(settled) ?? true).toBe(true);
          expect(toSlackMarkdown(text).startsWith(settled)).toBe(true);
        }
      }),
      { numRuns: 300 },
    );
  });

  test("that fills its message grows by whole paragraphs, and never takes anything back", () => {
    fc.assert(
      fc.property(long, fc.nat(1_999), (text, length) => {
        const [less, more] = [text.slice(0, text.length - length), text].map(toSettledMarkdown);
        expect(more?.startsWith(less ?? "")).toBe(true);
        expect(toSlackMarkdown(text).startsWith(more ?? "")).toBe(true);
      }),
      { numRuns: 30 },
    );
    const text = `${"x".repeat(0.8 * MAX_LENGTH)}\n\nnext`;
    expect(toSettledMarkdown(text)).toBe("x".repeat(0.8 * MAX_LENGTH));
  });

  test("is measured in bytes, with what is put between", () => {
    expect(lengthOfMarkdown("abc")).toBe(3);
    expect(lengthOfMarkdown("漢字")).toBe(6);
    expect(lengthOfMarkdown("<!here>")).toBe(10);
  });
});

describe("words for notifications", () => {
  test("are the text, with nothing that Slack would read as more", () => {
    expect(toFallback("a < b & <@U1>")).toBe("a &lt; b &amp; &lt;@U1&gt;");
  });

  test("are cut where they are too long, between characters", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", minLength: 2_950, maxLength: 3_100 }), (text) => {
        const fallback = toFallback(text);
        expect(fallback.length).toBeLessThanOrEqual(3_000);
        expect(fallback.isWellFormed()).toBe(true);
        expect(fallback.replace(/&(amp|lt|gt);/g, "")).not.toMatch(/[&<>]/);
      }),
      { numRuns: 50 },
    );
  });
});
