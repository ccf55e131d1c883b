import { describe, expect, test } from "vitest";
import { findDeceptiveLinks } from "../../../../adapters/slack/write/links.ts";

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
  ])("are left alone where they are honest: %s", (text) => {
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
  ])("are found where they deceive: %s", (text) => expect(isDefused(text)).toBe(true));

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
  ])("are undecided only while what follows makes a difference: %s", (text, place) => {
    expect(findDeceptiveLinks(text)).toEqual({ deceptive: [], undecidedAt: place });
  });

  test("cost little, however many brackets there are", () => {
    const text = `bank.com${"[bank.com](".repeat(900)}`;
    expect(findDeceptiveLinks(text).deceptive.length).toBeGreaterThan(0);
  });
});
