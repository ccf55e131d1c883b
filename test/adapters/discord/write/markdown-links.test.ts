import { describe, expect, test } from "vitest";
import { toHonestLink } from "../../../../adapters/discord/write/markdown-links.ts";

function show(words: string, target: string): string {
  return toHonestLink(`[${words}](${target})`, words, target);
}

describe("a link", () => {
  test("stays as it is when its words name no address", () => {
    expect(show("the docs", "https://docs.example/x")).toBe("[the docs](https://docs.example/x)");
    expect(show("Node.js", "https://nodejs.org")).toBe("[Node.js](https://nodejs.org)");
    expect(show("main.py", "https://code.example/main.py")).toBe("[main.py](https://code.example/main.py)");
    expect(show("docs.example", "https://docs.example/deep/page")).toBe(
      "[docs.example](https://docs.example/deep/page)",
    );
  });

  test.each([
    ["https://bank.example.com", "https://evil.example.net"],
    ["bank.com", "https://evil.net/bank.com"],
    ["go to www.bank.com now", "https://evil.net"],
    ["bank.com", "https://bank.com.evil.net"],
    ["ｂａｎｋ．ｃｏｍ", "https://evil.net"],
    ["**bank.com**", "https://evil.net"],
    ["ba\u200Bnk.com", "https://evil.net"],
    ["bank.com", "https://bank.com@evil.net"],
  ])("shows where it leads when its words name another address: %s over %s", (words, target) => {
    const shown = show(words, target);
    expect(shown).toContain(`(<${target}>)`);
    expect(shown).not.toMatch(/\]\(/);
  });

  test("is its bare address when the words are the address", () => {
    expect(show("https://a.example/b/", "https://a.example/b")).toBe("https://a.example/b");
    expect(show("www.a.example", "https://a.example")).toBe("https://a.example");
    expect(show("", "https://a.example")).toBe("https://a.example");
  });

  test("stands for a picture, which Discord does not draw from text", () => {
    expect(toHonestLink("![a cat](https://a.example/cat.png)", "a cat", "https://a.example/cat.png")).toBe(
      "[a cat](https://a.example/cat.png)",
    );
  });

  test("is left alone when it is no web address", () => {
    expect(show("mail", "mailto:a@b.example")).toBe("[mail](mailto:a@b.example)");
    expect(show("here", "./file.md")).toBe("[here](./file.md)");
  });
});
