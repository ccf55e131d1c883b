import { describe, expect, test } from "vitest";
import {
  joinSources,
  linkMarks,
  readSmallPrint,
  type Source,
  toSmallPrint,
  toSource,
  withoutSmallPrint,
} from "../../src/text/sources.ts";

const tea: Source = { url: "https://a.example/tea", title: "Tea", marks: [1] };
const kettle: Source = { url: "https://b.example/k?x=1", title: "", marks: [2, 3] };
const read: Source = { url: "https://c.example/", title: "C" };
const ALL = [tea, kettle, read];

describe("a source", () => {
  test.each([
    "javascript:alert(1)",
    "file:///etc/passwd",
    "//a.example",
    "https://me:secret@a.example/",
    `https://a.example/${"x".repeat(600)}`,
    "",
    7,
    undefined,
  ])("the bot does not take the address %j for a source", (address) => expect(toSource(address)).toBeUndefined());

  test("a source cannot leave its link, whatever its address and title contain", () => {
    const source = toSource("https://a.example/a(b)[c]|<d>", "A [fake](https://evil.example) `*_\n<@1>\u202E");
    expect(source?.url).toBe("https://a.example/a%28b%29%5Bc%5D%7C%3Cd%3E");
    const [, line = ""] = toSmallPrint(source ? [source] : []);
    // A title that names another site is not shown.
    expect(line).toBe(`-# 1. [a.example](${source?.url})`);
    const [, marked = ""] = toSmallPrint([{ ...tea, title: "*Tea* [1] <@1>" }]);
    expect(marked).toBe("-# 1. [\\*Tea\\* (1) \\<@1\\>](https://a.example/tea)");
    expect(readSmallPrint(`Hi\n\n-# Sources:\n${marked}`).lines).toEqual([
      { number: "1", label: "*Tea* (1) <@1>", url: tea.url },
    ]);
  });

  test("the list has each source once, cited ones first, and no more than fit under an answer", () => {
    const again = { url: tea.url, title: "Other", marks: [4] };
    expect(joinSources([read, { ...kettle, marks: [] }], [tea, again, kettle])).toEqual([
      { ...kettle, marks: [2, 3] },
      { ...tea, marks: [1, 4] },
      read,
    ]);
    const many = Array.from({ length: 100 }, (_, index) => ({ url: `https://a.example/${index}`, title: "" }));
    expect(joinSources(many)).toHaveLength(30);
    expect(toSmallPrint(many)).toHaveLength(9);
    expect(toSmallPrint([])).toEqual([]);
  });

  test("the model's own words cannot look like the list of sources", () => {
    const faked = withoutSmallPrint("Hi\n\n-# Sources:\n-# 1. [x](https://evil.example/)");
    expect(readSmallPrint(faked).lines).toEqual([]);
  });
});

describe("a citation mark in an answer", () => {
  const [one, two] = ["[[1]](https://a.example/tea)", "[[2]](https://b.example/k?x=1)"];

  test.each([
    ["Old[1][3].", `Old${one}${two}.`],
    ["Old【1】 and 【2†L1-L3】, 【3:0†source】", `Old${one} and ${two}, ${two}`],
    ["Old ([a.example](https://a.example/tea)).", `Old ${one}.`],
    ["Unknown [9], read ([c](https://c.example/)).", "Unknown [9], read ([c](https://c.example/))."],
    ["A link [1](https://x.example/) and [[1]](https://x.example/), an image ![1](x).", undefined],
    ["Code `a[1]`, ``b`[1]`` and \\[1].", undefined],
    ["```js\na[1]\n```", undefined],
    ["~~~\na[1]", undefined],
    ["[1]: https://x.example/", undefined],
  ])("the bot turns the marks in %j into %j", (text, linked = text) => expect(linkMarks(text, ALL)).toBe(linked));

  test("the bot leaves a mark alone if several pages have its number, or if the answer cites no page", () => {
    expect(linkMarks("Old[1].", [tea, { ...kettle, marks: [1] }])).toBe("Old[1].");
    expect(linkMarks("Old[1].", [read])).toBe("Old[1].");
  });

  test("a growing text with marks never removes visible text", () => {
    const text = "Old[1][3], [2](x), a[0] 【1†source】 `[1]` end [1]";
    let before = "";
    for (let end = 1; end <= text.length; end++) {
      const shown = linkMarks(text.slice(0, end), ALL, true);
      if (!shown.startsWith(before)) expect(shown).toBe(before);
      before = shown;
    }
    expect(linkMarks(text, ALL).startsWith(before)).toBe(true);
  });

  test("the bot finds marks in a long text of brackets and backticks in linear time", () => {
    const odd = [
      "`".repeat(20_000),
      "[".repeat(20_000),
      "([a".repeat(10_000),
      "` `` ".repeat(10_000),
      "【1".repeat(20_000),
    ];
    const startedMs = performance.now();
    for (const text of odd) linkMarks(text, ALL);
    expect(performance.now() - startedMs).toBeLessThan(2_000);
  });
});
