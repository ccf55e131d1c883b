import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  lengthOfMarkdown,
  readTable,
  rewriteProse,
  toDiscordMarkdown,
  toHonestLink,
  widthOf,
  wrap,
} from "../../../../adapters/discord/write/markdown.ts";
import { splitMarkdown } from "../../../../src/text/split.ts";

const PIECES = [
  "word ",
  "数据 ",
  "🎉 ",
  "\n",
  "\n\n",
  "| a | bb |\n|---|:-:|\n",
  "| **x** | long cell with words |\n",
  "|| ",
  "```js\n",
  "```\n",
  "~~~\n",
  "````md\n",
  "#### head\n",
  "[a.com](https://b.com) ",
  "__bold__ ",
  "`code || x` ",
  "> quote\n",
  "- [x] ",
];
const markdown = fc.array(fc.constantFrom(...PIECES), { maxLength: 60 }).map((pieces) => pieces.join(""));
/** A table whose first cell wraps onto a second line, next to an empty cell. */
const WRAPPED = `| a | bb |\n|---|:-:|\n${"[a.com](https://b.com) ".repeat(2)}\`code || x\` word `;

describe("Markdown for Discord", () => {
  test("a folded quote becomes one spoiler line that nothing inside it can end", () => {
    const quote = "> [!thinking]- Thought for 3 s\n> First `a || b`.\n> \n> Then \\\n\n**Done.**";
    expect(toDiscordMarkdown(quote)).toBe("> **Thought for 3 s**\n> || First `a | | b`. Then \\ ||\n\n**Done.**");
    expect(toDiscordMarkdown("> [!note] mine\n> x")).toBe("> [!note] mine\n> x");
  });

  test("tables become code, and the text around them stays the same", () => {
    expect(toDiscordMarkdown("before\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nafter")).toBe(
      "before\n\n```\na │ b\n──┼──\n1 │ 2\n```\n\nafter",
    );
  });

  test("every code fence becomes three backticks, followed by at most one word", () => {
    expect(toDiscordMarkdown("~~~python title=x\nprint(1)\n~~~")).toBe("```python\nprint(1)\n```");
    expect(toDiscordMarkdown("````md\n```js\n```\n````")).toBe("```md\n`\u200B``js\n`\u200B``\n```");
    expect(toDiscordMarkdown("```{.weird}\nx\n```")).toBe("```\nx\n```");
  });

  test("code for Discord stays as written", () => {
    const code = "```py\n#### not a heading\na || b\n| a | b |\n|---|---|\n__init__\n```";
    expect(toDiscordMarkdown(code)).toBe(code);
  });

  test("plain text, half a table and half a code fence stay unchanged", () => {
    for (const text of ["plain, 100 % fine.", "| a | b |", "```js\nlet x", "*half", "[half](https://a"])
      expect(toDiscordMarkdown(text)).toBe(text);
  });

  test("Markdown for Discord loses no words", () => {
    fc.assert(
      fc.property(markdown, (text) => {
        const read = (from: string) => from.match(/word|数据|🎉|long|cell|bold|code|quote|head/g) ?? [];
        // The rest of a wrapped cell comes after the next cell.
        const words = (from: string) => (text.includes("|---|") ? read(from).toSorted() : read(from));
        expect(words(toDiscordMarkdown(text))).toEqual(words(text));
      }),
      { examples: [[WRAPPED]] },
    );
  });

  test("Markdown for Discord measures length in UTF-16 units, as Discord does", () => {
    expect(lengthOfMarkdown("a数🎉")).toBe(4);
    expect(lengthOfMarkdown("x".repeat(2_000))).toBe(2_000);
    expect(lengthOfMarkdown("a || b")).toBe(8);
    fc.assert(
      fc.property(markdown, (text) => {
        expect(lengthOfMarkdown(text)).toBeGreaterThanOrEqual(toDiscordMarkdown(text).length);
        expect(lengthOfMarkdown(text)).toBeGreaterThanOrEqual(text.length);
      }),
    );
  });

  test("every part fits into a message if the splitter measures length as Discord does", () => {
    fc.assert(
      fc.property(markdown, (text) => {
        const parts = splitMarkdown(text.repeat(3), { maxLength: 200, lengthOf: lengthOfMarkdown });
        for (const { text: part } of parts) expect(toDiscordMarkdown(part).length).toBeLessThanOrEqual(200);
      }),
      // The last item's checkbox is shorter only with a trailing space.
      { examples: [["`code || x` > quote\n\n\n\n\n- [x] \n\n- [x] ~~~\n| a | bb |\n|---|:-:|\n"]] },
    );
  });
});

describe("prose for Discord", () => {
  test.each([
    ["headings deeper than three are flattened", "#### Deep\n###### Deeper", "### Deep\n### Deeper"],
    ["headings of three and less stay", "# a\n### b\n#nohash", "# a\n### b\n#nohash"],
    ["two bars hide nothing", "a || b || c", "a \\|\\| b \\|\\| c"],
    ["bars in code stay", "`a || b` and ``c || d``", "`a || b` and ``c || d``"],
    ["bars that are escaped already stay", "a \\|\\| b", "a \\|\\| b"],
    ["two underscores are bold, not underlined", "__bold text__ here", "**bold text** here"],
    [
      "underscores inside names and addresses stay",
      "snake__case__x https://a.example/__x__",
      "snake__case__x https://a.example/__x__",
    ],
    ["a quote inside a quote does not quote the rest", ">>> deep\n> > deeper\n> one", "> deep\n> deeper\n> one"],
    ["plus signs become bullets", "+ a\n  + b", "- a\n  - b"],
    ["task boxes become boxes", "- [ ] open\n- [x] done", "- ☐ open\n- ☑ done"],
    ["a rule of asterisks opens no emphasis", "***\n_ _ _", "---\n---"],
    ["links are honest", "see [bank.com](https://evil.net/x_(y))", "see `bank.com` (<https://evil.net/x_(y)>)"],
    ["pictures become links", "![cat](https://a.example/c.png)", "[cat](https://a.example/c.png)"],
    ["a link in code is code", "`[a.com](https://b.com)`", "`[a.com](https://b.com)`"],
  ])("Markdown for Discord is rewritten: %s", (_, markdown, shown) => expect(rewriteProse(markdown)).toBe(shown));

  // On Discord each of these is a link, because Discord allows text and spaces around a URL.
  test.each([
    "[bank.com]( https://evil.net )",
    "[bank.com](\nhttps://evil.net)",
    "[bank.com](https://evil.net 'a title')",
    '[bank.com](https://evil.net "a\ntitle")',
    "[bank.com\n](https://evil.net)",
    "[see [the [bank.com]]](https://evil.net)",
    "[a\\]bank.com](https://evil.net)",
    "[bank.com](https://evil.net/(a(b)c))",
    "[bank.com](https:evil.net)",
    "[bank.com](discord://-/evil)",
    "> `code that ends with the quote\n[bank.com](https://evil.net)`",
    "- `code that ends with the item\n[bank.com](https://evil.net)`",
  ])("a link shows where it leads however its author writes it: %j", (markdown) => {
    const shown = rewriteProse(markdown);
    expect(shown).not.toMatch(/\]\(/);
    expect(shown).toMatch(/` \(<(?:https:|discord:)/);
  });

  test("code over several lines stays code", () => {
    const code = "see `one [bank.com](https://evil.net)\ntwo [bank.com](https://evil.net)` there";
    expect(rewriteProse(code)).toBe(code);
  });
});

function showLink(words: string, target: string): string {
  return toHonestLink(`[${words}](${target})`, words, target);
}

describe("a link", () => {
  test("a link stays as it is if its text names no address", () => {
    expect(showLink("the docs", "https://docs.example/x")).toBe("[the docs](https://docs.example/x)");
    expect(showLink("Node.js", "https://nodejs.org")).toBe("[Node.js](https://nodejs.org)");
    expect(showLink("main.py", "https://code.example/main.py")).toBe("[main.py](https://code.example/main.py)");
    expect(showLink("docs.example", "https://docs.example/deep/page")).toBe(
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
  ])("a link shows its target if its text names another address: %s over %s", (words, target) => {
    const shown = showLink(words, target);
    expect(shown).toContain(`(<${target}>)`);
    expect(shown).not.toMatch(/\]\(/);
  });

  test("a link becomes the bare address if its text is the address", () => {
    expect(showLink("https://a.example/b/", "https://a.example/b")).toBe("https://a.example/b");
    expect(showLink("www.a.example", "https://a.example")).toBe("https://a.example");
    expect(showLink("", "https://a.example")).toBe("https://a.example");
  });

  test("a link to anything but a web address stays unchanged", () => {
    expect(showLink("mail", "mailto:a@b.example")).toBe("[mail](mailto:a@b.example)");
    expect(showLink("here", "./file.md")).toBe("[here](./file.md)");
  });
});

function showTable(markdown: string): string | undefined {
  return readTable(markdown.split("\n"), 0)?.shown;
}

describe("a table", () => {
  test("a table becomes aligned columns, even with double-width letters", () => {
    expect(showTable("| 名前 | n |\n|:--|--:|\n| 太郎 | 12 |\n| Ann | 3 |")).toBe(
      ["```", "名前 │  n", "─────┼───", "太郎 │ 12", "Ann  │  3", "```"].join("\n"),
    );
  });

  test("a table aligns right and centre as its row of dashes says", () => {
    expect(showTable("a | b | c\n:-- | :-: | --:\nlong | long | long")).toBe(
      ["```", "a    │  b   │    c", "─────┼──────┼─────", "long │ long │ long", "```"].join("\n"),
    );
  });

  test("a table drops Markdown marks that code would show as text, and keeps their content", () => {
    const shown = showTable(
      "| **bold** and *it* | `code` |\n|---|---|\n| [docs](https://a.example/x) | a \\| b<br>c |",
    );
    expect(shown).toContain("bold and it");
    expect(shown).toContain("docs (https://a.example/x) │ a | b c");
    expect(shown).not.toMatch(/\*\*|`code`|<br>/);
  });

  test("a table wraps long cells inside their column", () => {
    const shown = showTable(`| key | words |\n|---|---|\n| a | ${"lorem ipsum ".repeat(20)} |`) ?? "";
    const lines = shown.split("\n");
    expect(lines.length).toBeGreaterThan(6);
    for (const line of lines) expect(widthOf(line)).toBeLessThanOrEqual(100);
    expect(shown.match(/lorem/g)).toHaveLength(20);
  });

  test("a table cannot end its own code block", () => {
    expect(showTable("| a |\n|---|\n| ``` |")?.match(/```/g)).toHaveLength(2);
  });

  test("a table puts cells without a column into the last one", () => {
    expect(showTable("| a | b |\n|---|---|\n| 1 | 2 | 3 | 4 |")).toContain("1 │ 2 | 3 | 4");
  });

  test("a table treats missing cells as empty, and ends at the first line that is not a row", () => {
    expect(readTable(["| a | b |", "|---|---|", "| 1 |", "text"], 0)).toMatchObject({ count: 3 });
    expect(readTable(["| a | b |", "|---|---|", "```js | x"], 0)).toMatchObject({ count: 2 });
  });

  test("the adapter takes no text without a row of dashes for a table", () => {
    expect(showTable("| a | b |\n| c | d |")).toBeUndefined();
    expect(showTable("a | b\n---")).toBeUndefined();
    expect(showTable("| a | b |\n|---|")).toBeUndefined();
  });
});

describe("the width of a text in columns", () => {
  test("widthOf counts one column for a letter and two for CJK, Hangul, full-width forms and emoji", () => {
    expect(widthOf("abc é")).toBe(5);
    expect(widthOf("数据")).toBe(4);
    expect(widthOf("한글 カナ")).toBe(9);
    expect(widthOf("ＡＢ！")).toBe(6);
    expect(widthOf("🎉❤️👩‍👩‍👧")).toBe(6);
  });

  test("widthOf counts nothing for invisible characters", () => {
    expect(widthOf("e\u0301")).toBe(1);
    expect(widthOf("a\u200Bb")).toBe(2);
  });

  test("widthOf counts at most two columns for one visible glyph, however many parts it has", () => {
    expect(widthOf("\u{1D158}\u{1D165}\u{1D16E}")).toBe(2);
    expect(widthOf("क्षि")).toBe(2);
  });

  test("widthOf follows Unicode's own table of wide characters", () => {
    expect(widthOf("\u{17000}\u{18B00}")).toBe(4);
    expect(widthOf("☰䷀")).toBe(4);
    expect(widthOf("\u{1F000}")).toBe(1);
  });
});

describe("wrapping a text", () => {
  test("wrap breaks between words, and inside a word only if it is longer than a line", () => {
    expect(wrap("one two three", 7)).toEqual(["one two", "three"]);
    expect(wrap("a 数据数据数据", 6)).toEqual(["a", "数据数", "据数据"]);
  });

  test("wrap keeps every letter, and no line exceeds the width", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", maxLength: 80 }), fc.integer({ min: 2, max: 20 }), (text, width) => {
        const lines = wrap(text, width);
        expect(lines.join("").replace(/\s/g, "")).toBe(text.replace(/\s/g, ""));
        for (const line of lines)
          expect(widthOf(line)).toBeLessThanOrEqual(Math.max(width, widthOf(text) <= width ? width : 2));
      }),
    );
  });
});
