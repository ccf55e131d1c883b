import { expect, test } from "vitest";
import type { Button } from "../../src/port/sink.ts";
import { describeWithBrowser } from "../support/browser.ts";
import { COMPOSER, sitDown } from "../support/desk.ts";
import { eventually } from "../support/eventually.ts";

const signal = new AbortController().signal;
const STOP: Button[] = [{ action: "stop", turnId: "turn-1", label: "Stop" }];
const RETRY: Button[] = [{ action: "retry", turnId: "turn-1", label: "Retry" }];
const ANSWER = `## An answer

Some **bold** words, and \`code\`.

\`\`\`python
def double(n):
    return n * 2  # ${"a long line ".repeat(12)}
\`\`\`

| name | size |
|---|---:|
| Ada | 1 |
| 千恵 | 22 |

1. one
2. two

日本語の文章も壊れません。`;

describeWithBrowser("the look of an answer in a browser", () => {
  const desk = sitDown();
  const shownText = () => desk.tab.locator(".message.bot message-body").last().innerText();

  test("the page shows a growing answer in many steps, stops it, and offers Retry", async () => {
    await desk.write("hello");
    const { sink } = await desk.takeUp();
    await sink.progress("thinking", signal);
    await desk.tab.waitForSelector(".progress >> text=thinking");
    const { id } = await sink.post({ markdown: "word ", buttons: STOP, streaming: true }, "n", signal);
    const steps = new Set<string>();
    for (let n = 2; n < 30; n++) {
      await sink.edit(id, { markdown: "word ".repeat(n * 3), buttons: STOP, streaming: true }, signal);
      await eventually(async () => (await shownText()).length).toBeGreaterThan(n);
      steps.add(await shownText());
    }
    expect(steps.size).toBeGreaterThan(5);
    expect(await desk.tab.locator(".caret").count()).toBe(1);
    expect(await desk.tab.locator(".progress").count()).toBe(0);
    await desk.tab.press(COMPOSER, "Escape");
    expect(await desk.lastEvent(2)).toMatchObject({ kind: "action", action: "stop", turnId: "turn-1" });
    await sink.edit(id, { markdown: "word word\n\n_Stopped._", buttons: RETRY, streaming: false }, signal);
    await desk.tab.click(".message .retry");
    expect(await desk.lastEvent(3)).toMatchObject({ kind: "action", action: "retry" });
    await eventually(() => desk.tab.locator(".caret").count()).toBe(0);
    expect(await shownText()).toMatch(/word word\s+Stopped\./);
  });

  test("the page renders headings, code, tables and lists, and finally shows every character", async () => {
    await desk.write("hello");
    const { sink } = await desk.takeUp();
    const { id } = await sink.post({ markdown: "#", buttons: [], streaming: true }, "n", signal);
    for (let n = 7; n < ANSWER.length; n += 13) {
      await sink.edit(id, { markdown: ANSWER.slice(0, n), buttons: [], streaming: true }, signal);
      await desk.tab.evaluate("new Promise(requestAnimationFrame)");
    }
    await sink.edit(id, { markdown: ANSWER, buttons: [], streaming: false }, signal);
    await desk.tab.waitForSelector("message-body:not(.growing) ol");
    const body = desk.tab.locator(".message.bot message-body");
    const streamed = await body.innerHTML();
    expect(await body.locator("h2").innerText()).toBe("An answer");
    expect(await body.locator("pre code").innerText()).toContain("return n * 2");
    expect(await body.locator(".hljs-keyword").first().innerText()).toBe("def");
    expect(await body.locator("td[align=right]").last().innerText()).toBe("22");
    expect(await desk.tab.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
    await desk.tab.reload();
    await desk.tab.waitForSelector("message-body ol");
    // A text that grows step by step has the same result as the whole text at once.
    expect(await body.innerHTML()).toBe(streamed);
  });

  test("the model's thoughts are folded before its answer, and open with a press", async () => {
    await desk.write("hello");
    const { sink } = await desk.takeUp();
    const thought = "> [!thinking]- Thought for 3 s\n> <b>first</b> **this**\n> \n> > then that\n\n";
    const { id } = await sink.post({ markdown: `${thought}It`, buttons: [], streaming: true }, "n", signal);
    await sink.edit(id, { markdown: `${thought}It is.\n\n> a quote`, buttons: [], streaming: false }, signal);
    await desk.tab.waitForSelector("message-body:not(.growing) details");
    const fold = desk.tab.locator(".message.bot details");
    expect(await fold.locator("summary").innerText()).toBe("Thought for 3 s");
    expect(await fold.locator("strong").isVisible()).toBe(false);
    expect(await shownText()).not.toContain("first");
    await fold.locator("summary").click();
    expect(await fold.locator("p").first().innerText()).toBe("<b>first</b> this");
    expect(await fold.locator("blockquote").innerText()).toBe("then that");
    expect(await desk.tab.locator(".message.bot message-body > div > blockquote").innerText()).toBe("a quote");
  });

  test("the sources of an answer are links in small print", async () => {
    await desk.write("hello");
    const { sink } = await desk.takeUp();
    const sources = "-# Sources:\n-# 1. [Tea \\*](https://a.example/)\n-# 2. [b.example](https://b.example/)";
    const markdown = `Old[[1]](https://a.example/).\n\n-# only words\n\n${sources}`;
    await sink.post({ markdown, buttons: [], streaming: false }, "n", signal);
    const small = desk.tab.locator(".message.bot p.small").last();
    expect(await small.innerText()).toBe("Sources:\n1. Tea *\n2. b.example");
    expect(await small.locator("a").evaluateAll((links) => links.map((link) => link.getAttribute("href")))).toEqual([
      "https://a.example/",
      "https://b.example/",
    ]);
    expect(await desk.tab.locator(".message.bot a").first().innerText()).toBe("[1]");
  });

  test("a link to a chat opens it on the page, and a link to another fragment is text", async () => {
    await desk.write("hello");
    const { sink } = await desk.takeUp();
    await sink.post({ markdown: "[open](#chat-1) [other](#setup)", buttons: [], streaming: false }, "n", signal);
    const link = desk.tab.locator(".message.bot a");
    await link.waitFor();
    expect(
      await link.evaluateAll((all) => all.map((one) => [one.getAttribute("href"), one.getAttribute("target")])),
    ).toEqual([["#chat-1", null]]);
    await link.click();
    expect(new URL(desk.tab.url()).hash).toBe("#chat-1");
  });

  test("the content of an answer can run nothing, load nothing and restyle nothing", async () => {
    const requests: string[] = [];
    desk.tab.on("request", (request) => requests.push(request.url()));
    await desk.write("hello");
    const { sink } = await desk.takeUp();
    const hostile = [
      '<img src=x onerror="window.pwned=1"><script>window.pwned=1</script><style>body{display:none}</style>',
      "![pixel](https://evil.example/pixel.png) [click](javascript:window.pwned=1) [data](data:text/html,x)",
      "<iframe srcdoc='<script>parent.pwned=1</script>'></iframe><a href=javascript:alert(1)>a</a>",
      "[safe](https://good.example.org/path) <div style='position:fixed'>div</div> <b onclick=alert(1)>b</b>",
      "```html\n<img src=x onerror=window.pwned=1>\n```",
      '```"><img src=x onerror=window.pwned=1>\nx\n```',
    ].join("\n\n");
    await sink.post({ markdown: hostile, buttons: [], streaming: false }, "n", signal);
    await desk.tab.waitForSelector("text=safe");
    const body = desk.tab.locator(".message.bot message-body");
    const links = body.locator("a[href]");
    expect(await desk.tab.evaluate("'pwned' in window")).toBe(false);
    expect(await body.locator("img, script, style, iframe, [style], [onerror], [onclick]").count()).toBe(0);
    expect(await body.locator("a:not([target=_blank][rel~=noopener])").count()).toBe(0);
    expect(
      await links.evaluateAll((all) => all.map((link) => [link.getAttribute("href"), link.getAttribute("data-host")])),
    ).toEqual([
      ["https://evil.example/pixel.png", "evil.example"],
      ["https://good.example.org/path", "good.example.org"],
    ]);
    expect(await body.innerText()).toContain("<script>window.pwned=1</script>");
    expect(requests.filter((url) => !url.startsWith(desk.page.url))).toEqual([]);
  });

  test("the page scrolls with a growing answer until the reader scrolls up, and a button leads back to the end", async () => {
    await desk.write("hello");
    const { sink } = await desk.takeUp();
    const { id } = await sink.post({ markdown: "line\n\n".repeat(60), buttons: [], streaming: true }, "n", signal);
    const fromBottom = () =>
      desk.tab
        .locator("main .scroller")
        .evaluate((box) => Math.round(box.scrollHeight - box.scrollTop - box.clientHeight));
    await eventually(() => desk.tab.locator("main .block").count()).toBeGreaterThanOrEqual(60);
    await eventually(fromBottom).toBeLessThan(3);
    await desk.tab.mouse.move(600, 300);
    await desk.tab.mouse.wheel(0, -400);
    await desk.tab.waitForSelector(".scroller.is-away");
    const before = await desk.tab.locator("main .scroller").evaluate((box) => box.scrollTop);
    await sink.edit(id, { markdown: "line\n\n".repeat(90), buttons: [], streaming: false }, signal);
    await eventually(() => desk.tab.locator("main .block").count()).toBeGreaterThanOrEqual(90);
    expect(await desk.tab.locator("main .scroller").evaluate((box) => box.scrollTop)).toBe(before);
    await desk.tab.click(".jump");
    await eventually(fromBottom).toBeLessThan(3);
  });

  test("the page renders 3,000 words in many messages, and keeps unchanged ones", async () => {
    await desk.write("hello");
    const { sink } = await desk.takeUp();
    const ids: string[] = [];
    for (let n = 0; n < 6; n++) {
      const markdown = `Part ${n}\n\n${"word ".repeat(500)}`;
      ids.push((await sink.post({ markdown, buttons: [], streaming: false }, `n${n}`, signal)).id);
    }
    await eventually(() => desk.tab.locator(".message.bot").count()).toBe(6);
    await desk.tab.evaluate(`{
      window.changed = new Set();
      new MutationObserver((records) => {
        for (const { target } of records) window.changed.add(target.closest?.(".message")?.dataset.id);
      }).observe(document.querySelector(".timeline"), { childList: true, subtree: true });
    }`);
    await desk.tab.evaluate(
      "document.querySelectorAll('.message.bot')[5].querySelectorAll('.block')[1].isTheSame = true",
    );
    const markdown = `Part 5\n\n${"word ".repeat(500)}\n\nand one more`;
    await sink.edit(ids[5] ?? "", { markdown, buttons: [], streaming: false }, signal);
    await desk.tab.waitForSelector("text=and one more");
    const changed = await desk.tab.evaluate("[...window.changed].filter((id) => id !== undefined)");
    expect(changed).toEqual([ids[5]?.slice("local:".length)]);
    expect(
      await desk.tab.evaluate("document.querySelectorAll('.message.bot')[5].querySelectorAll('.block')[1].isTheSame"),
    ).toBe(true);
  });
});
