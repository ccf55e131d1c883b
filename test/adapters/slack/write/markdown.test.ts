import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  findDeceptiveLinks,
  lengthOfMarkdown,
  MAX_LENGTH,
  toFallback,
  toSettledMarkdown,
  toSlackMarkdown,
} from "../../../../adapters/slack/write/markdown.ts";
import { pingsOf } from "../../../../lab/slack-sim/pings.ts";
import { emptyContent } from "../../../../lab/slack-sim/world.ts";

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
    "Markdown for Slack notifies no one: %s",
    (markdown) => {
      expect(pingsOf(emptyContent({ markdown }))).not.toEqual([]);
      expect(pingsOf(emptyContent({ markdown: toSlackMarkdown(markdown) }))).toEqual([]);
    },
  );

  test.each(["<div>", "<!DOCTYPE html>", "<!-- note -->", "a < b", "List<@NonNull String>", "#include <stdio.h>"])(
    "Markdown for Slack keeps text that only looks like a mention: %s",
    (markdown) => expect(toSlackMarkdown(markdown).replace("<\u200B@N", "<@N")).toBe(markdown),
  );

  test("Markdown for Slack never notifies anyone for any text, in the message and in the notification", () => {
    fc.assert(
      fc.property(hostile, (text) => {
        const content = emptyContent({ markdown: toSlackMarkdown(text), text: toFallback(text) });
        expect(pingsOf(content)).toEqual([]);
      }),
    );
  });

  test("settled Markdown stays the start of every longer text, including the whole", () => {
    fc.assert(
      fc.property(hostile, hostile, (text, more) => {
        expect(toSlackMarkdown(text + more).startsWith(toSettledMarkdown(text))).toBe(true);
        expect(toSettledMarkdown(text + more).startsWith(toSettledMarkdown(text))).toBe(true);
      }),
    );
  });

  test("Markdown with links grows letter by letter without removing anything", () => {
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

  test("Markdown that fills its message grows by whole paragraphs, and never removes anything", () => {
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

  test("Markdown is measured in bytes, including the inserted gaps", () => {
    expect(lengthOfMarkdown("abc")).toBe(3);
    expect(lengthOfMarkdown("漢字")).toBe(6);
    expect(lengthOfMarkdown("<!here>")).toBe(10);
  });
});

describe("words for notifications", () => {
  test("the fallback text is plain, with nothing that Slack reads as markup", () => {
    expect(toFallback("a < b & <@U1>")).toBe("a &lt; b &amp; &lt;@U1&gt;");
  });

  test("the fallback text is truncated between characters if it is too long", () => {
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

function isDefused(text: string): boolean {
  return findDeceptiveLinks(text).deceptive.length > 0;
}

describe("the links of a text", () => {
  test.each([
    "[the docs](https://docs.bank.com)",
    "[https://bank.com/x](https://bank.com/x) and [docs](https://evil.net)",
    "bank.com is down, [see here](https://status.io)",
    '[bank.com]( <https://bank.com/a b> "bank.com")',
    "[![build](https://img.shields.io/a.svg)](https://github.com/a)",
    "<https://bank.com>, <https://bank.com|the bank> and <https://bank.com|bank.com>",
    "a < b and [bank.com] alone",
    "- [ ] bank.com\n- [x] [docs](https://docs.io)",
  ])("an honest link is unchanged: %s", (text) => {
    expect(findDeceptiveLinks(text)).toEqual({ deceptive: [], undecidedAt: undefined });
  });

  test.each([
    "[https://bank.com](https://evil.net)",
    "![bank.com](https://evil.net/a.png)",
    "[**bank.com**](<https://evil.net>)",
    "[bank.com](\nhttps://evil.net)",
    "[see [bank.com] here](https://evil.net)",
    "[bank.com \\[](https://evil.net)",
    "[bank.com `[`](https://evil.net)",
    "[bank.com `]`](https://evil.net)",
    "[bank.com](https://bank.com\\)@evil.net)",
    "[bank.com](<https://bank.com @evil.net>)",
    "[bank.com](https://bank.com()@evil.net)",
    "[bank.com](https://bank.com&#64;evil.net)",
    `[bank.com ${"x".repeat(700)}](https://evil.net)`,
    `[bank.com](https://evil.net/${"x".repeat(3_000)})`,
    "[bank.com][1]\n\n[1]: https://evil.net",
    "[bank.com]\n\n[bank.com]: https://evil.net",
    "`[bank.com](https://evil.net)`",
    "<https://evil.net|bank.com>",
    "<HTTPS://evil.net|https://bank.com> now",
    "<mailto:a@evil.net|a@bank.com>",
  ])("a deceptive link is found: %s", (text) => expect(isDefused(text)).toBe(true));

  test.each([
    ["so [bank.com", undefined],
    ["so [bank.com]", 12],
    ["so [bank.com](https://bank.co", 12],
    ["so [bank.com](<https://bank.com/a b", 12],
    ["so [the docs](https://docs.", undefined],
    ["so <", 3],
    ["so <https", 3],
    ["so <https://bank.com|ba", 3],
    ["so <div class", undefined],
  ])("a link is undecided only while later text matters: %s", (text, place) => {
    expect(findDeceptiveLinks(text)).toEqual({ deceptive: [], undecidedAt: place });
  });

  test("checking links is fast with any number of brackets", () => {
    const text = `bank.com${"[bank.com](".repeat(900)}`;
    expect(findDeceptiveLinks(text).deceptive.length).toBeGreaterThan(0);
  });
});
