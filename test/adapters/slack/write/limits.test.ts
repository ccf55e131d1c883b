import fc from "fast-check";
import { expect, test } from "vitest";
import { LIMITS } from "../../../../adapters/slack/write/limits.ts";
import { toSettledMarkdown } from "../../../../adapters/slack/write/markdown.ts";
import { createSplitter } from "../../../../src/text/split.ts";

const words = fc.array(fc.constantFrom("tea", "harbour", "日本語の文", "because", "the lighthouse,", "naïve"), {
  minLength: 5,
  maxLength: 60,
});
const sentence = words.map((all) => `${all.join(" ")}.`);
const lines = fc.array(sentence, { minLength: 2, maxLength: 12 });
const block = fc.oneof(
  sentence,
  sentence.map((text) => `## ${text.slice(0, 40)}`),
  lines.map((all) => all.map((text) => `- ${text}`).join("\n")),
  lines.map((all) => all.map((text, index) => `${index + 1}. ${text}`).join("\n\n")),
  lines.map((all) => `\`\`\`ts\n${all.join("\n\n")}\n\`\`\``),
  lines.map((all) => `| a | b |\n|---|---|\n${all.map((text) => `| ${text.slice(0, 30)} | x |`).join("\n")}`),
);
const answer = fc.array(block, { minLength: 25, maxLength: 60 }).map((blocks) => blocks.join("\n\n"));

test("what a stream has shown of a message stays in that message, whatever follows", () => {
  fc.assert(
    fc.property(answer, fc.integer({ min: 20, max: 400 }), (text, step) => {
      const { maxLength, lengthOf, keptLength } = LIMITS;
      const splitter = createSplitter({ maxLength: maxLength - 16, lengthOf, keptLength });
      const shown: string[] = [];
      for (let end = step; end < text.length + step; end += step) {
        const parts = splitter.update(text.slice(0, end).trimEnd());
        for (const [index, { text: whole, closingLength }] of parts.entries()) {
          expect(whole.startsWith(shown[index] ?? "")).toBe(true);
          const source = whole.slice(0, whole.length - closingLength);
          if (index === parts.length - 1) shown[index] = toSettledMarkdown(source);
        }
      }
    }),
    { numRuns: 20, endOnFailure: true },
  );
});
