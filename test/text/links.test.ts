import { describe, expect, test } from "vitest";
import { isDeceptive, isSameAddress, namesHost } from "../../src/text/links.ts";

describe("the honesty of a link", () => {
  test.each([
    ["the docs", "https://docs.example/x"],
    ["Node.js", "https://nodejs.org"],
    ["main.py", "https://code.example/main.py"],
    ["docs.bank.com", "https://docs.bank.com/deep/page"],
    ["www.bank.com", "https://bank.com:8443/"],
    ["Bücher.de", "https://bücher.de/liste"],
    ["https://archive.org/https://bank.com", "https://archive.org/https://bank.com"],
    ["help@bank.com", "mailto:help@bank.com?subject=x"],
  ])("a link that leads where its text says is honest: %s over %s", (words, target) => {
    expect(isDeceptive(words, target)).toBe(false);
  });

  test.each([
    ["https://bank.example", "https://evil.example"],
    ["bank.com", "https://evil.net/bank.com"],
    ["go to www.bank.com now", "https://evil.net"],
    ["bank.com", "https://bank.com.evil.net"],
    ["bank.com", "https://bank.com@evil.net"],
    ["ｂａｎｋ．ｃｏｍ", "https://evil.net"],
    ["**bank**.com", "https://evil.net"],
    ["ba\u200Bnk.com", "https://evil.net"],
    ["bank\\.com", "https://evil.net"],
    ["bank&#46;c&#x6F;m", "https://evil.net"],
    ["bаnk.com", "https://bank.com"],
    ["help@bank.com", "mailto:help@evil.net"],
    ["bank.com", "evil.net"],
    ["bank.com", "slack://open"],
  ])("a link that leads elsewhere than its text says is deceptive: %s over %s", (words, target) => {
    expect(isDeceptive(words, target)).toBe(true);
  });

  test("a link is honest if its text names no host", () => {
    expect(["bank.com", "https://a.example", "see bank.com:"].every(namesHost)).toBe(true);
    expect(["the docs", "main.rs", "v1.2", "&#99999999;", ""].some(namesHost)).toBe(false);
  });

  test("a link whose text is its address counts as such, however its author writes the address", () => {
    expect(isSameAddress(" www.a.example/b/ ", "https://a.example/b")).toBe(true);
    expect(isSameAddress("a.example", "https://a.example/b")).toBe(false);
  });
});
