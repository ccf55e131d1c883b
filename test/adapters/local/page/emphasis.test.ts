import { Marked } from "marked";
import { describe, expect, test } from "vitest";
import { createCjkEmphasis } from "../../../../adapters/local/page/emphasis.ts";

const plain = new Marked({ gfm: true, breaks: true });
const marked = new Marked({ gfm: true, breaks: true }).use(createCjkEmphasis());
const toHtml = (text: string) => marked.parseInline(text, { async: false });

describe("emphasis on the page", () => {
  test.each([
    ["**標題：**正文", "<strong>標題：</strong>正文"],
    ["**重要。**次の文", "<strong>重要。</strong>次の文"],
    ["**标题:**正文", "<strong>标题:</strong>正文"],
    ["**注（あ）**は", "<strong>注（あ）</strong>は"],
    ["正文**「標題」**正文", "正文<strong>「標題」</strong>正文"],
    ["他说**“你好”**然后走", "他说<strong>“你好”</strong>然后走"],
    ["**甲：**乙，**丙：**丁", "<strong>甲：</strong>乙，<strong>丙：</strong>丁"],
    ["*強調。*文", "<em>強調。</em>文"],
    ["***甲！***乙", "<em><strong>甲！</strong></em>乙"],
    ["~~取消：~~正文", "<del>取消：</del>正文"],
    ["**제목:**본문", "<strong>제목:</strong>본문"],
    ["**標題：**Text 1", "<strong>標題：</strong>Text 1"],
    ["**`code`**後", "<strong><code>code</code></strong>後"],
    ["**[名](https://a.example)**後", '<strong><a href="https://a.example">名</a></strong>後'],
    ["「**重點**」很", "「<strong>重點</strong>」很"],
    ['"**重點**"很', "&quot;<strong>重點</strong>&quot;很"],
  ])("the page shows emphasis as people expect: %s", (text, html) => expect(toHtml(text)).toBe(html));

  test.each([
    "a * b * c",
    "2**3**4",
    "**not closed：",
    "`**甲：**乙`",
    "\\*\\*甲：\\*\\*乙",
    "** 甲：**乙",
    "snake_case_name：乙",
    "**bold.**next",
    'say**"hi"**there',
    "*a*b, **c** and ~~d~~.",
    "1 ~ 2 ~ 3",
  ])("the page leaves other text unchanged: %s", (text) =>
    expect(toHtml(text)).toBe(plain.parseInline(text, { async: false })),
  );

  test("the page finds emphasis quickly in a long line of marks", () => {
    const html = toHtml("**甲：**乙".repeat(2_000));
    expect(html.match(/<strong>/g)).toHaveLength(2_000);
  });
});
