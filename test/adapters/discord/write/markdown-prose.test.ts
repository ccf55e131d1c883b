import { describe, expect, test } from "vitest";
import { rewriteProse } from "../../../../adapters/discord/write/markdown-prose.ts";

describe("prose", () => {
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
  ])("%s", (_, markdown, shown) => expect(rewriteProse(markdown)).toBe(shown));

  // Each of these is a link to Discord, which is not strict about what stands around an address.
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
  ])("a link is honest however it is written: %j", (markdown) => {
    const shown = rewriteProse(markdown);
    expect(shown).not.toMatch(/\]\(/);
    expect(shown).toMatch(/` \(<(?:https:|discord:)/);
  });

  test("code over several lines stays code", () => {
    const code = "see `one [bank.com](https://evil.net)\ntwo [bank.com](https://evil.net)` there";
    expect(rewriteProse(code)).toBe(code);
  });
});
