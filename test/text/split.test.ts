import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { SplitLimits } from "../../src/text/ruler.ts";
import type { Part } from "../../src/text/split.ts";
import { createSplitter, splitMarkdown } from "../../src/text/split.ts";
import { codePoint } from "../support/code-point.ts";
import { markdown, misfits, UNITS } from "../support/markdown.ts";

const ofChars = (maxLength: number): SplitLimits => ({ maxLength, lengthOf: UNITS.utf16 });

const limits = fc.record({
  maxLength: fc.oneof(fc.integer({ min: 20, max: 60 }), fc.integer({ min: 60, max: 400 })),
  lengthOf: fc.constantFrom(...Object.values(UNITS)),
});

const HOSTILE = {
  backticks: "`",
  "combining marks": "\u0301",
  "opening brackets": "[",
  "half links": "[](x ",
  "line feeds": "\n",
  spaces: " ",
  mentions: "<@",
  "one long word": "x",
  flags: "🇩🇪",
  families: "👩‍👩‍👧‍👦",
  "opening emphasis": "*a _b ",
  stars: "*",
  "empty fences": "```\n```\n",
  "nested fences": "```\n~~~~\n",
  "table rows": "| a | b |\n|---|---|\n",
  "quote marks": ">",
  "spaces with a mark": " \u0308",
  items: "- ",
  headings: "# x\n",
  backslashes: "\\",
  entities: "&a",
  addresses: "https://",
  conjuncts: "क्ष",
};

describe("splitMarkdown", () => {
  test("splitMarkdown meets its guarantees for any text, limit and unit", () => {
    fc.assert(
      fc.property(markdown, limits, (text, limits) => {
        expect(misfits(text, splitMarkdown(text, limits), limits)).toEqual([]);
      }),
      { numRuns: 500 },
    );
  });

  test("splitMarkdown keeps settled parts while the text grows", () => {
    fc.assert(
      fc.property(markdown, limits, fc.array(fc.nat({ max: 40 })), (text, limits, steps) => {
        expect(driftOf(text, limits, steps)).toBeUndefined();
      }),
      { numRuns: 120 },
    );
  });

  // The fence's line does not fit as prose before it is recognized as a fence. A fence also needs room for its closing
  // line.
  test("splitMarkdown keeps a split made while the opening line of a fence was arriving", () => {
    const text = `${"x".repeat(36)}\n\n# T\n\n${"y".repeat(12)}\n\`\`\`ts\ncode\n\`\`\`\n`;
    expect(driftOf(text, ofChars(60), [])).toBeUndefined();
  });

  // The last visible mark can be the second of three.
  test("splitMarkdown splits before marks that could become a fence, not between them", () => {
    const bytes = (maxLength: number): SplitLimits => ({ maxLength, lengthOf: UNITS.utf8Bytes });
    const shown = (text: string, limits: SplitLimits) => splitMarkdown(text, limits).map((part) => part.text);
    expect(shown("👩‍👩‍👧‍👦 ``a ` b`` a", bytes(27))).toEqual(["👩‍👩‍👧‍👦", "``a ` b`` a"]);
    const address = "https://a.example/path?q=1&r=2";
    expect(shown(`${address} \`\`a \` b\`\``, bytes(32))).toEqual([address, "``a ` b``"]);
    const link = "[a link](https://a.example/b)";
    expect(shown(`${link}\`\`\`a \` b\`\`~~gone~~(so)<@123456>`, ofChars(58))[0]).toBe(link);
    expect(shown(`\` 12345 a ${address}\n    \`\`\`\n    \`\`\``, ofChars(46))).toEqual([
      `\` 12345 a ${address}`,
      "    ```\n    ```",
    ]);
  });

  // Each of the two unclosed marks joins all later text, including the fence's line.
  test("splitMarkdown splits before a fence's line rather than inside that line, even if the whole text is one element", () => {
    const limits = { maxLength: 49, lengthOf: UNITS.utf8Bytes };
    const text = "` *it is* [ answer नमस्ते a&amp;b\n  ```\n  ```\n\n~~~\n~~~\n\n";
    expect(misfits(text, splitMarkdown(text, limits), limits)).toEqual([]);
    const tagged = "` [ some words of an answer\n```python\ncode\n```\n";
    for (const maxLength of [29, 30, 31, 32, 34, 36, 38, 40])
      expect(splitMarkdown(tagged, ofChars(maxLength))[0]?.text).toBe("` [ some words of an answer");
  });

  test("splitMarkdown keeps a fence's indentation, without which the fence might not close", () => {
    const text = "- ```\n\n\n    ```\n        ```\n    ```\n\n";
    expect(misfits(text, splitMarkdown(text, ofChars(28)), ofChars(28))).toEqual([]);
  });

  test("splitMarkdown covers any text without gap or overlap", () => {
    fc.assert(
      fc.property(fc.string({ unit: codePoint, maxLength: 300 }), limits, (text, limits) => {
        const parts = splitMarkdown(text, limits);
        expect(parts.map(({ start, end }) => text.slice(start, end)).join("")).toBe(text);
        expect(parts.filter((part) => limits.lengthOf(part.text) > limits.maxLength)).toEqual([]);
      }),
      { numRuns: 200 },
    );
  });

  test("splitMarkdown leaves a text that fits unchanged", () => {
    expect(splitMarkdown("# Hello\n\nworld\n", ofChars(20))).toMatchObject([
      { text: "# Hello\n\nworld", start: 0, end: 15 },
    ]);
  });

  test("splitMarkdown returns no parts for an empty text, and one empty part for white space", () => {
    expect(splitMarkdown("", ofChars(20))).toEqual([]);
    expect(splitMarkdown(" \n\n", ofChars(20))).toMatchObject([{ text: "", start: 0, end: 3 }]);
  });

  test("splitMarkdown holds back half a surrogate pair until the other half arrives", () => {
    expect(splitMarkdown("ab\uD83D", ofChars(20))).toMatchObject([{ text: "ab", start: 0, end: 3 }]);
    expect(splitMarkdown("ab\uD83D\uDE00", ofChars(20))).toMatchObject([{ text: "ab😀", start: 0, end: 4 }]);
  });

  test.each(Object.entries(HOSTILE))("splitMarkdown finishes within its limits on 50 KB of %s", (_, piece) => {
    const text = `start ${piece.repeat(Math.ceil(50_000 / piece.length))} end`;
    for (const lengthOf of [UNITS.utf16, UNITS.utf8Bytes]) {
      const parts = splitMarkdown(text, { maxLength: 2000, lengthOf });
      expect(parts.at(-1)?.end).toBe(text.length);
      expect(parts.filter((part) => lengthOf(part.text) > 2000)).toEqual([]);
    }
  });

  test.each(Object.entries(HOSTILE))("splitMarkdown measures %s in linear time", (_, piece) => {
    const measured = (sizeChars: number): number => {
      let sum = 0;
      const lengthOf = (text: string): number => {
        sum += text.length;
        return text.length;
      };
      splitMarkdown(piece.repeat(Math.ceil(sizeChars / piece.length)), { maxLength: 2000, lengthOf });
      return sum;
    };
    expect(measured(200_000)).toBeLessThanOrEqual(measured(50_000) * 5 + 500_000);
  });
});

describe("createSplitter", () => {
  test("a splitter splits a growing text as if it had come at once, and measures only the unsettled end", () => {
    const text = "A sentence of the answer, and another one after it.\n\n".repeat(400);
    let measured = 0;
    const limits = { maxLength: 500, lengthOf: (part: string) => (measured += part.length) && part.length };
    const splitter = createSplitter(limits);
    splitter.update(text);
    const whole = measured;
    measured = 0;
    const grown = splitter.update(`${text}The end.`);
    expect(measured).toBeLessThan(whole / 10);
    expect(grown).toEqual(splitMarkdown(`${text}The end.`, ofChars(500)));
  });

  test("a splitter returns the same parts as splitting the whole text, at every step", () => {
    fc.assert(
      fc.property(markdown, limits, fc.integer({ min: 1, max: 50 }), (text, limits, step) => {
        const splitter = createSplitter(limits);
        for (let end = 0; end < text.length + step; end += step) {
          const soFar = text.slice(0, end);
          expect(splitter.update(soFar)).toEqual(splitMarkdown(soFar, limits));
        }
      }),
      { numRuns: 80 },
    );
  });

  test("a splitter starts over with a text that does not continue the previous one", () => {
    const splitter = createSplitter(ofChars(20));
    splitter.update("one two three four five six seven");
    expect(splitter.update("other words, and then some more")).toEqual(
      splitMarkdown("other words, and then some more", ofChars(20)),
    );
  });

  test("a splitter does not expose its own list", () => {
    const splitter = createSplitter(ofChars(20));
    const text = "one two three four five six seven";
    splitter.update(text).length = 0;
    expect(splitter.update(text)).toEqual(splitMarkdown(text, ofChars(20)));
  });
});

/** Differences in a settled part after the text arrived in steps. */
function driftOf(text: string, limits: SplitLimits, steps: number[]): string | undefined {
  let before: Part[] = [];
  for (let at = 0, i = 0; at < text.length; i++) {
    at = Math.min(at + 1 + (steps[i % Math.max(steps.length, 1)] ?? 0), text.length);
    const parts = splitMarkdown(text.slice(0, at), limits);
    for (const [index, part] of before.slice(0, -1).entries()) {
      const after = parts[index];
      if (after === undefined || after.text !== part.text || after.end !== part.end || after.start !== part.start)
        return `part ${index} of ${JSON.stringify(text.slice(0, at))}: ${JSON.stringify({ part, after })}`;
    }
    if (parts.length < before.length) return `a part vanished from ${JSON.stringify(text.slice(0, at))}`;
    before = parts;
  }
  return undefined;
}

describe("the rest of a text whose beginning another message shows", () => {
  const LIMITS = { maxLength: 60, lengthOf: (text: string) => text.length };
  const rest = (text: string, from: number) => createSplitter(LIMITS, from).update(text);

  test("the splitter splits the rest of a text into parts that cover it", () => {
    const text = Array.from({ length: 40 }, (_, index) => `word${index}`).join(" ");
    const parts = rest(text, 13);
    expect(parts.map((part) => part.text).join(" ")).toBe(text.slice(13).trim());
    expect([parts[0]?.start, parts.at(-1)?.end]).toEqual([13, text.length]);
    expect(parts.slice(1).map(({ start }) => start)).toEqual(parts.slice(0, -1).map(({ end }) => end));
  });

  test("the splitter reopens the code in which the rest continues, but not code that only ends there", () => {
    const text = "```ts\nconst a = 1;\nconst b = 2;\n```\nDone.";
    expect(rest(text, text.indexOf("\nconst b"))[0]?.text).toBe("```ts\nconst b = 2;\n```\nDone.");
    expect(rest(text, text.indexOf("\n```\nDone"))[0]?.text).toBe("Done.");
  });

  test("the rest of a text has no parts while it is empty", () => {
    expect(rest("One.", 4)).toEqual([]);
    expect(rest("One", 4)).toEqual([]);
  });
});

describe("a text that grows while people read it", () => {
  const keeping = (limits: SplitLimits): SplitLimits => ({ ...limits, keptLength: 0.85 * limits.maxLength });
  const long = fc.array(markdown, { minLength: 1, maxLength: 4 }).map((all) => all.join("\n\n"));
  const roomy = fc.record({
    maxLength: fc.integer({ min: 500, max: 800 }),
    lengthOf: fc.constantFrom(...Object.values(UNITS)),
  });
  const PARAGRAPH = `${"Some words of a sentence. ".repeat(30).trim()}\n\n`;

  test("each part keeps its visible text, however the text arrives", () => {
    fc.assert(
      fc.property(markdown, limits, fc.array(fc.nat({ max: 40 })), (text, limits, steps) => {
        const splitter = createSplitter(keeping(limits));
        let before: Part[] = [];
        for (let at = 0, i = 0; at < text.length; i++) {
          at = Math.min(at + 1 + (steps[i % Math.max(steps.length, 1)] ?? 0), text.length);
          const parts = splitter.update(text.slice(0, at));
          expect(parts.slice(0, Math.max(before.length - 1, 0))).toEqual(before.slice(0, -1));
          expect(sourceOf(parts[before.length - 1])).toMatch(new RegExp(`^${RegExp.escape(keptOf(before.at(-1)))}`));
          before = parts;
        }
      }),
      { numRuns: 120 },
    );
  });

  test("the splitter splits a growing text into parts that meet all other guarantees too", () => {
    fc.assert(
      fc.property(long, roomy, fc.integer({ min: 5, max: 60 }), (text, limits, step) => {
        const splitter = createSplitter(keeping(limits));
        for (let end = 0; end < text.length; end += step) splitter.update(text.slice(0, end));
        const found = misfits(text, splitter.update(text, true), keeping(limits));
        // If an unclosed mark joins half of a part into one element, the visible half stays.
        expect(found.filter((sentence) => !/is cut$|inside a character$/.test(sentence))).toEqual([]);
      }),
      { numRuns: 60 },
    );
  });

  test("a part ends between paragraphs or sentences when it is nearly full, and the next one starts at once", () => {
    const limits = { ...ofChars(2_000), keptLength: 1_700 };
    const between = createSplitter(limits).update(`${PARAGRAPH.repeat(2)}${PARAGRAPH.slice(0, 200)}\n\nMore`);
    expect(between.map(({ text }) => text)).toEqual([PARAGRAPH.repeat(2) + PARAGRAPH.slice(0, 200), "More"]);
    const sentences = createSplitter(limits).update("Some words of a sentence. ".repeat(75));
    expect(sentences[0]?.text.length).toBeLessThan(1_900);
    expect(sentences[0]?.text).toMatch(/sentence\.$/);
  });

  test("a part ends with a complete sentence, even if more text follows at once", () => {
    const limits = { ...ofChars(2_000), keptLength: 1_700 };
    const lead = "Some words of a sentence. ".repeat(71).trim();
    const [code] = createSplitter(limits).update(`${lead} And more of it.\n\`\`\`js\nlet a = 1;\n`);
    expect(code?.text).toBe(`${lead} And more of it.`);
    const [, quoted] = createSplitter(limits).update(`> ${lead} And more of it. And on.`);
    expect(quoted?.text).toMatch(/^> \S/);
    const [table] = createSplitter(limits).update(
      `${"x ".repeat(850)}\n\n| a | b |\n|---|---|\n${"| One. Two. | b |\n".repeat(20)}`,
    );
    expect(table?.text).not.toContain("|");
  });

  // After the fence was closed, a sentence in the code looked like the end of a part.
  test("the splitter does not split a growing text inside code that has ended", () => {
    const limits = { ...ofChars(500), keptLength: 425 };
    const code = `\`\`\`\n${"# Some comment\n".repeat(30)}# One. Two. Three.\n\`\`\`\n`;
    for (const text of [code, `${code}And more`, `${code}\nAnd more of it than fits`]) {
      const splitter = createSplitter(limits);
      for (let end = 0; end < text.length; end += 20) splitter.update(text.slice(0, end));
      for (const parts of [splitter.update(text), createSplitter(limits).update(text)])
        expect(misfits(text, parts, limits)).toEqual([]);
    }
  });

  test("the splitter does not split a growing text whose final version fits whole", () => {
    const text = "Some words of a sentence. ".repeat(75);
    expect(createSplitter({ ...ofChars(2_000), keptLength: 1_700 }).update(text, true)).toHaveLength(1);
  });
});

function sourceOf(part: Part | undefined): string {
  return part === undefined ? "" : part.text.slice(0, part.text.length - part.closingLength);
}

/** A part's visible text. Healing hides an incomplete mark, and a line that is or could become a fence. */
function keptOf(part: Part | undefined): string {
  return sourceOf(part)
    .replace(/(?<=^|\n)[ \t>*+\d.)-]*(?:[`~]{1,2}|[`~]{3}.*)$/, "")
    .trimEnd()
    .replace(/(?<=^|\n)[ \t>]*(?:#{1,6}|[-+*~]|--|==?|\d{1,9}[.)])?$/, "")
    .trimEnd();
}
