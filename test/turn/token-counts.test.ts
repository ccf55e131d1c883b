import { estimateTokenCount } from "tokenx";
import { expect, test } from "vitest";
import { estimateTokens } from "../../src/turn/token-counts.ts";

test.each(["", "short", "lorem ipsum ".repeat(200), "漢字".repeat(2_000)])(
  "a text counts the same the first time and from then on",
  (text) => {
    for (let time = 0; time < 2; time++) expect(estimateTokens(text)).toBe(estimateTokenCount(text));
  },
);
