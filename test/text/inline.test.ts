import { expect, test } from "vitest";
import { scanInline } from "../../src/text/inline.ts";

test("scanInline excludes emphasis marks and the surrounding parenthesis from an address", () => {
  const text = "(https://a.b/c) **https://d.e** https://f.g/h_(i)";
  const spans = scanInline(text, 0, text.length, false).spans.filter((span) => !span.soft);
  expect(spans.map(({ start, end }) => text.slice(start, end))).toEqual([
    "https://a.b/c",
    "https://d.e",
    "https://f.g/h_(i)",
  ]);
});
