import fc from "fast-check";
import { expect, test } from "vitest";
import { section } from "../../../../adapters/slack/act/forms.ts";
import { escapeMarkup } from "../../../../adapters/slack/write/markdown.ts";

const textOf = (block: ReturnType<typeof section>) => (block["text"] as { text: string }).text;

test("a Slack form truncates a paragraph to the limit without splitting a character or an escape", () => {
  fc.assert(
    fc.property(fc.integer({ min: 2_985, max: 3_000 }), fc.constantFrom("&", "<", "😀", "x"), (length, last) => {
      const text = textOf(section(escapeMarkup("x".repeat(length) + last.repeat(20))));
      expect(text.length).toBeLessThanOrEqual(3_000);
      expect(text.isWellFormed()).toBe(true);
      expect(text).toMatch(/(x|&(amp|lt);|😀)…?$/u);
    }),
  );
});
