import { expect, test } from "vitest";
import { truncate } from "../../src/text/truncate.ts";

test("truncate keeps a text that fits, and ends a longer one with its mark", () => {
  expect(truncate("abc", 3)).toBe("abc");
  expect(truncate("abcd", 3)).toBe("ab…");
  expect(truncate("abcdef", 4, "")).toBe("abcd");
});

test("truncate leaves no half of a character that takes two units", () => {
  expect(truncate("a🦊🦊", 3)).toBe("a…");
  expect(truncate("a🦊🦊", 4)).toBe("a🦊…");
});
