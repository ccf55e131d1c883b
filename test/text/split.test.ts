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
  test("keeps every promise for any text, limit and unit", () => {
    fc.assert(
      fc.property(markdown, limits, (text, limits) => {
        expect(misfits(text, splitMarkdown(text, limits), limits)).toEqual([]);
      }),
      { numRuns: 1500 },
    );
  });

  test("leaves settled parts as they are while the text grows", () => {
    fc.assert(
      fc.property(markdown, limits, fc.array(fc.nat({ max: 40 })), (text, limits, steps) => {
        expect(driftOf(splitMarkdown, text, limits, steps)).toBeUndefined();
      }),
      { numRuns: 300 },
    );
  });

  // The line of the fence stops fitting as prose before it is known to be a fence, which needs room for closing it too.
  test("keeps a cut that was made while the opening line of a fence was arriving", () => {
    const text = `${"x".repeat(36)}\n\n# T\n\n${"y".repeat(12)}\n\`\`\`ts\ncode\n\`\`\`\n`;
    expect(driftOf(splitMarkdown, text, ofChars(60), [])).toBeUndefined();
  });

  // The last mark that is seen may be the second of three.
  test("cuts before marks that may come to be a fence rather than between them", () => {
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

  // Each of the two marks that nothing closes binds all of the text behind it, the line of the fence as well.
  test("is cut before the line of a fence rather than in it, also where everything belongs together", () => {
    const limits = { maxLength: 49, lengthOf: UNITS.utf8Bytes };
    const text = "` *it is* [ answer नमस्ते a&amp;b\n  ```\n  ```\n\n~~~\n~~~\n\n";
    expect(misfits(text, splitMarkdown(text, limits), limits)).toEqual([]);
    const tagged = "` [ some words of an answer\n```python\ncode\n```\n";
    for (const maxLength of [29, 30, 31, 32, 34, 36, 38, 40])
      expect(splitMarkdown(tagged, ofChars(maxLength))[0]?.text).toBe("` [ some words of an answer");
  });

  test("keeps the indentation of a fence, without which it may not be closed where it was", () => {
    const text = "- ```\n\n\n    ```\n        ```\n    ```\n\n";
    expect(misfits(text, splitMarkdown(text, ofChars(28)), ofChars(28))).toEqual([]);
  });

  test("is held by these properties to more than cutting at the last space", () => {
    const failing = fc.check(
      fc.property(markdown, limits, (text, limits) => misfits(text, naiveSplit(text, limits), limits).length === 0),
      { numRuns: 1500 },
    );
    expect(failing.failed).toBe(true);
    const drifting = fc.check(
      fc.property(markdown, limits, fc.array(fc.nat({ max: 40 })), (text, limits, steps) => {
        return driftOf(evenSplit, text, limits, steps) === undefined;
      }),
      { numRuns: 300 },
    );
    expect(drifting.failed).toBe(true);
  });

  test("covers the text without gap or overlap, whatever it is", () => {
    fc.assert(
      fc.property(fc.string({ unit: codePoint, maxLength: 300 }), limits, (text, limits) => {
        const parts = splitMarkdown(text, limits);
        expect(parts.map(({ start, end }) => text.slice(start, end)).join("")).toBe(text);
        expect(parts.filter((part) => limits.lengthOf(part.text) > limits.maxLength)).toEqual([]);
      }),
      { numRuns: 500 },
    );
  });

  test("leaves a text that fits as it is", () => {
    expect(splitMarkdown("# Hello\n\nworld\n", ofChars(20))).toMatchObject([
      { text: "# Hello\n\nworld", start: 0, end: 15 },
    ]);
  });

  test("makes nothing of nothing, and one empty part of white space", () => {
    expect(splitMarkdown("", ofChars(20))).toEqual([]);
    expect(splitMarkdown(" \n\n", ofChars(20))).toMatchObject([{ text: "", start: 0, end: 3 }]);
  });

  test("holds back half a surrogate pair until the other half has come", () => {
    expect(splitMarkdown("ab\uD83D", ofChars(20))).toMatchObject([{ text: "ab", start: 0, end: 3 }]);
    expect(splitMarkdown("ab\uD83D\uDE00", ofChars(20))).toMatchObject([{ text: "ab😀", start: 0, end: 4 }]);
  });

  test.each(Object.entries(HOSTILE))("comes to an end within its limits on 200 KB of %s", (_, piece) => {
    const text = `start ${piece.repeat(Math.ceil(200_000 / piece.length))} end`;
    for (const lengthOf of [UNITS.utf16, UNITS.utf8Bytes]) {
      const parts = splitMarkdown(text, { maxLength: 2000, lengthOf });
      expect(parts.at(-1)?.end).toBe(text.length);
      expect(parts.filter((part) => lengthOf(part.text) > 2000)).toEqual([]);
    }
  });

  test.each(Object.entries(HOSTILE))("measures no more of %s than in proportion to its length", (_, piece) => {
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
  test("splits a growing text as if it had come at once, and measures only what is not settled", () => {
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

  test("gives the same parts as splitting the whole, at every step", () => {
    fc.assert(
      fc.property(markdown, limits, fc.integer({ min: 1, max: 50 }), (text, limits, step) => {
        const splitter = createSplitter(limits);
        for (let end = 0; end < text.length + step; end += step) {
          const soFar = text.slice(0, end);
          expect(splitter.update(soFar)).toEqual(splitMarkdown(soFar, limits));
        }
      }),
      { numRuns: 200 },
    );
  });

  test("starts over with a text that does not continue the one before", () => {
    const splitter = createSplitter(ofChars(20));
    splitter.update("one two three four five six seven");
    expect(splitter.update("other words, and then some more")).toEqual(
      splitMarkdown("other words, and then some more", ofChars(20)),
    );
  });

  test("does not hand out its own list", () => {
    const splitter = createSplitter(ofChars(20));
    const text = "one two three four five six seven";
    splitter.update(text).length = 0;
    expect(splitter.update(text)).toEqual(splitMarkdown(text, ofChars(20)));
  });
});

/** What changed in a settled part, when the text arrived in steps. */
function driftOf(split: typeof splitMarkdown, text: string, limits: SplitLimits, steps: number[]): string | undefined {
  let before: Part[] = [];
  for (let at = 0, i = 0; at < text.length; i++) {
    at = Math.min(at + 1 + (steps[i % Math.max(steps.length, 1)] ?? 0), text.length);
    const parts = split(text.slice(0, at), limits);
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

function naiveSplit(text: string, { maxLength }: SplitLimits): Part[] {
  const parts: Part[] = [];
  for (let start = 0; start < text.length; ) {
    const space = text.lastIndexOf(" ", start + maxLength);
    const end = text.length - start <= maxLength ? text.length : space > start ? space : start + maxLength;
    parts.push({ text: text.slice(start, end), start, end, closingLength: 0 });
    start = end;
  }
  return parts;
}

/** Makes all parts about equally long: what a splitter must not do that is called while the text grows. */
function evenSplit(text: string, { maxLength }: SplitLimits): Part[] {
  const count = Math.ceil(text.length / maxLength);
  return Array.from({ length: count }, (_, i) => {
    const start = Math.floor((text.length * i) / count);
    const end = Math.floor((text.length * (i + 1)) / count);
    return { text: text.slice(start, end), start, end, closingLength: 0 };
  });
}

describe("a text of which the beginning is shown elsewhere", () => {
  const LIMITS = { maxLength: 60, lengthOf: (text: string) => text.length };
  const rest = (text: string, from: number) => createSplitter(LIMITS, from).update(text);

  test("is split from there on, in parts that cover the rest of it", () => {
    const text = Array.from({ length: 40 }, (_, index) => `word${index}`).join(" ");
    const parts = rest(text, 13);
    expect(parts.map((part) => part.text).join(" ")).toBe(text.slice(13).trim());
    expect([parts[0]?.start, parts.at(-1)?.end]).toEqual([13, text.length]);
    expect(parts.slice(1).map(({ start }) => start)).toEqual(parts.slice(0, -1).map(({ end }) => end));
  });

  test("opens the code again in which it goes on, and not where that only ends", () => {
    const text = "```ts\nconst a = 1;\nconst b = 2;\n```\nDone.";
    expect(rest(text, text.indexOf("\nconst b"))[0]?.text).toBe("```ts\nconst b = 2;\n```\nDone.");
    expect(rest(text, text.indexOf("\n```\nDone"))[0]?.text).toBe("Done.");
  });

  test("has no part while nothing follows", () => {
    expect(rest("One.", 4)).toEqual([]);
    expect(rest("One", 4)).toEqual([]);
  });
});

describe("a text that people read while it grows", () => {
  const keeping = (limits: SplitLimits): SplitLimits => ({ ...limits, keptLength: 0.85 * limits.maxLength });
  const long = fc.array(markdown, { minLength: 1, maxLength: 4 }).map((all) => all.join("\n\n"));
  const roomy = fc.record({
    maxLength: fc.integer({ min: 500, max: 800 }),
    lengthOf: fc.constantFrom(...Object.values(UNITS)),
  });
  const PARAGRAPH = `${"Some words of a sentence. ".repeat(30).trim()}\n\n`;

  test("keeps in each part what that has shown, however it arrives", () => {
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
      { numRuns: 300 },
    );
  });

  test("is split into parts that keep every other promise too", () => {
    fc.assert(
      fc.property(long, roomy, fc.integer({ min: 5, max: 60 }), (text, limits, step) => {
        const splitter = createSplitter(keeping(limits));
        for (let end = 0; end < text.length; end += step) splitter.update(text.slice(0, end));
        const found = misfits(text, splitter.update(text, true), keeping(limits));
        // Where a mark that nothing closes makes one thing of half a part, what of it was shown stays.
        expect(found.filter((sentence) => !/is cut$|inside a character$/.test(sentence))).toEqual([]);
      }),
      { numRuns: 150 },
    );
  });

  test("ends a part between paragraphs or sentences once it is nearly full, and goes on in the next at once", () => {
    const limits = { ...ofChars(2_000), keptLength: 1_700 };
    const between = createSplitter(limits).update(`${PARAGRAPH.repeat(2)}${PARAGRAPH.slice(0, 200)}\n\nMore`);
    expect(between.map(({ text }) => text)).toEqual([PARAGRAPH.repeat(2) + PARAGRAPH.slice(0, 200), "More"]);
    const sentences = createSplitter(limits).update("Some words of a sentence. ".repeat(75));
    expect(sentences[0]?.text.length).toBeLessThan(1_900);
    expect(sentences[0]?.text).toMatch(/sentence\.$/);
  });

  test("ends a part with the sentence as it is, whatever came at once behind it", () => {
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

  // A sentence in the code looked like the end of a part once the fence was closed.
  test("is not cut within code that has ended", () => {
    const limits = { ...ofChars(500), keptLength: 425 };
    const code = `\`\`\`\n${"# Some comment\n".repeat(30)}# One. Two. Three.\n\`\`\`\n`;
    for (const text of [code, `${code}And more`, `${code}\nAnd more of it than fits`]) {
      const splitter = createSplitter(limits);
      for (let end = 0; end < text.length; end += 20) splitter.update(text.slice(0, end));
      for (const parts of [splitter.update(text), createSplitter(limits).update(text)])
        expect(misfits(text, parts, limits)).toEqual([]);
    }
  });

  test("is not cut where all of it fits when no more of it comes", () => {
    const text = "Some words of a sentence. ".repeat(75);
    expect(createSplitter({ ...ofChars(2_000), keptLength: 1_700 }).update(text, true)).toHaveLength(1);
  });
});

function sourceOf(part: Part | undefined): string {
  return part === undefined ? "" : part.text.slice(0, part.text.length - part.closingLength);
}

/**
 * What of a part people have seen: healing shows nothing of a mark alone, or of a line that opens a fence or may come
 * to.
 */
function keptOf(part: Part | undefined): string {
  return sourceOf(part)
    .replace(/(?<=^|\n)[ \t>*+\d.)-]*(?:[`~]{1,2}|[`~]{3}.*)$/, "")
    .trimEnd()
    .replace(/(?<=^|\n)[ \t>]*(?:#{1,6}|[-+*~]|--|==?|\d{1,9}[.)])?$/, "")
    .trimEnd();
}
