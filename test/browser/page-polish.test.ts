import { expect, test } from "vitest";
import * as discord from "../../adapters/discord/preview.ts";
import * as slack from "../../adapters/slack/preview.ts";
import { describeWithBrowser } from "../support/browser.ts";
import { COMPOSER, sitDown } from "../support/desk.ts";
import { eventually } from "../support/eventually.ts";

const signal = new AbortController().signal;

describeWithBrowser("details of the local page in a browser", () => {
  const desk = sitDown();
  const body = () => desk.tab.locator(".message.bot message-body").last();

  async function answer(markdown: string, question = "hello") {
    await desk.write(question);
    const { sink } = await desk.takeUp();
    await sink.post({ markdown, buttons: [], streaming: false }, question, signal);
    await desk.tab.waitForSelector(".message.bot message-body > .block");
  }

  test("formulas use this server's fonts, and prices stay prices", async () => {
    const requests: string[] = [];
    desk.tab.on("request", (request) => requests.push(request.url()));
    await answer(
      "It costs $5 and $6, or `$x$`.\n\nWith $a^2 + b^2$ and \\(c\\):\n\n$$\n\\sqrt{\\frac{x}{y}}\n$$\n\n\\[ \\href{javascript:alert(1)}{x} \\]",
    );
    await eventually(() => body().locator(".math .katex").count()).toBe(4);
    expect(await body().locator(".math.display .katex-display").count()).toBe(2);
    expect(await body().locator("p").first().innerText()).toBe("It costs $5 and $6, or $x$.");
    expect(await body().locator("a").count()).toBe(0);
    await eventually(async () => requests.filter((url) => url.endsWith(".woff2")).length).toBeGreaterThan(0);
    expect(requests.filter((url) => !url.startsWith(desk.page.url))).toEqual([]);
    const height = await body()
      .locator(".math.display .katex-html")
      .first()
      .evaluate((box) => box.clientHeight);
    expect(height).toBeGreaterThan(20);
  });

  test("the page shows a message with too deeply nested marks as written, and the chat continues", async () => {
    const nested = `${">".repeat(3000)}<b>a</b>`;
    await answer(nested);
    await eventually(() => body().locator("p.plain").allInnerTexts()).toEqual([nested]);
    await answer("**after** it", "and now?");
    await eventually(() => body().locator("strong").allInnerTexts()).toEqual(["after"]);
    await desk.tab.reload();
    await eventually(() => desk.tab.locator(".message.bot message-body").allInnerTexts()).toEqual([nested, "after it"]);
  });

  test.each([
    ["its reader", 960],
    ["the browser", 150],
  ])(
    "a formula that is nested too deep for %s stays as written, and the page renders its neighbours",
    async (_, by) => {
      const nested = `$$\n${"x^{".repeat(by)}${"}".repeat(by)}\n$$`;
      await answer(`${nested}\n\nand $y$`);
      await eventually(() => body().locator(".math .katex").count()).toBe(1);
      // The library is already loaded, so the second message is rendered at once.
      await answer(`- $z$\n\n${nested}`, "and now?");
      await eventually(() => body().locator("li .katex").count()).toBe(1);
      expect(await body().locator(".math.display").innerText()).toContain("x^{x^{");
    },
  );

  test("the page renders a formula of twenty levels inside many quotes", async () => {
    await answer(`${">".repeat(400)} $${"x^{".repeat(20)}y${"}".repeat(20)}$`);
    await eventually(() => body().locator(".math .katex").count()).toBe(1);
    expect(await desk.tab.title()).not.toBe("");
  });

  test("the boxes of a task list have their text as label, and a link without a target is text", async () => {
    await answer(
      "- [x] buy **milk**\n  - [ ] oat\n- [ ] pay\n\n[one](nowhere) [two](javascript:x) [three](https://a.example/)",
    );
    const boxes = await body()
      .locator("input")
      .evaluateAll((all) => all.map((box) => box.getAttribute("aria-label")));
    expect(boxes).toEqual(["buy milk", "oat", "pay"]);
    expect(await body().locator("a").allInnerTexts()).toEqual(["three"]);
    expect(await body().innerText()).toContain("one two three");
  });

  test("long words wrap on a phone, in a table and in a command", async () => {
    await desk.tab.setViewportSize({ width: 390, height: 780 });
    const long = "https://long.example/".padEnd(300, "x");
    await answer(`| address | note |\n|---|---|\n| ${long} | ${long} |\n| \`${long}\` | b |`, "hello");
    await desk.write(`/help ${long}`);
    await eventually(() => desk.tab.locator(".command code").count()).toBe(1);
    const widths = await desk.tab
      .locator("td, .command code")
      .evaluateAll((all) => all.map((each) => each.clientWidth || each.getBoundingClientRect().width));
    expect(Math.max(...widths)).toBeLessThan(390);
    expect(await desk.tab.evaluate("document.documentElement.scrollWidth")).toBe(390);
  });

  test("the page continues a chat that a person started and did not send", async () => {
    await answer("an answer");
    await desk.tab.click(".new-chat");
    await desk.tab.waitForSelector(".welcome");
    await desk.tab.fill(COMPOSER, "not sent yet");
    await desk.tab.click(".lists a");
    await eventually(() => desk.tab.inputValue(COMPOSER)).toBe("");
    await desk.tab.click(".new-chat");
    await eventually(() => desk.tab.inputValue(COMPOSER)).toBe("not sent yet");
  });

  test("the page keeps a rejected command in its field", async () => {
    await desk.write("/nonsense");
    await desk.tab.waitForSelector(".message.failed");
    await answer("an answer");
    await eventually(() => desk.tab.locator(".message").last().innerText()).toContain("an answer");
    expect(await desk.tab.locator(".message").first().innerText()).toContain("/nonsense");
  });

  test("every button on a phone is large enough for a finger", async () => {
    await desk.tab.setViewportSize({ width: 390, height: 780 });
    await answer("an answer\n\n```\ncode\n```");
    const small = () =>
      desk.tab.locator("button:visible, select:visible").evaluateAll((all) =>
        all.flatMap((each) => {
          const { width, height } = each.getBoundingClientRect();
          return Math.round(width) < 32 || Math.round(height) < 32
            ? [`${each.className} ${each.ariaLabel}: ${width} x ${height}`]
            : [];
        }),
      );
    await eventually(small).toEqual([]);
    await desk.tab.click(".menu");
    await eventually(small).toEqual([]);
  });

  test("the header shows the model, whether it is the sandbox, and problems of the gateway", async () => {
    let model = "first-model";
    const readAbout = async () => ({ model, kept: { entries: 0, conversations: 0 }, used: "" });
    await desk.visit({ readAbout, isSandbox: true });
    const head = desk.tab.locator(".answering");
    await eventually(() => head.innerText()).toMatch(/first-model\s*sandbox/);
    desk.page.adapter.showGateway({ state: "unreachable", sentence: "The gateway is away." });
    await eventually(() => head.innerText()).toMatch(/first-model\s*unreachable/);
    expect(await head.getAttribute("title")).toBe("The gateway is away.");
    desk.page.adapter.showGateway(undefined);
    model = "second-model";
    await answer("The model is changed.");
    await eventually(() => head.innerText()).toMatch(/second-model\s*sandbox/);
  });

  test("a phone offers to connect platforms and a model without scrolling", async () => {
    await desk.tab.setViewportSize({ width: 390, height: 667 });
    const examples = Array.from({ length: 5 }, (_, index) => ({ label: `Example ${index}`, prompt: "Write a lot" }));
    const steps = ["Slack", "Discord", "a model"].map((name) => ({
      id: name,
      name,
      title: `Connect ${name}`,
      summary: "",
      ways: [],
    }));
    const setup = {
      isConfigured: () => true,
      steps: () => steps,
      check: async () => [],
      listModels: async () => ({ models: [], findings: [] }),
      target: () => undefined,
      toEnvFile: () => ({ text: "", problems: [] }),
      save: () => [],
    };
    await desk.visit({ setup, examples });
    const last = desk.tab.getByRole("button", { name: "Connect a model" });
    await last.waitFor();
    const [button, composer] = await Promise.all([last.boundingBox(), desk.tab.locator(".composer").boundingBox()]);
    expect((button?.y ?? 0) + (button?.height ?? 0)).toBeLessThan(composer?.y ?? 0);
  });

  test("a search for words finds a message and leads to it", async () => {
    await answer("The needle is in here.");
    await desk.tab.click(".new-chat");
    await desk.tab.waitForSelector(".welcome");
    await desk.tab.keyboard.press("Control+k");
    await desk.tab.fill(".search input", "NEEDLE");
    await eventually(() => desk.tab.locator(".found-messages mark").allInnerTexts()).toEqual(["needle"]);
    expect(await desk.tab.locator(".found-messages small").innerText()).toBe("Palaver in hello");
    await desk.tab.press(".search input", "Enter");
    await eventually(() => desk.tab.locator("main .message.found").innerText()).toContain("The needle is in here.");
  });

  test("a search keeps the keyboard focus when another chat opens behind it", async () => {
    await desk.tab.keyboard.press("Control+k");
    const isTypedInto = () => desk.tab.locator(".search input").evaluate((input) => input.matches(":focus"));
    await eventually(isTypedInto).toBe(true);
    await desk.tab.evaluate(`new Promise((changed) => {
      addEventListener("hashchange", () => requestAnimationFrame(() => requestAnimationFrame(changed)));
      location.hash = "chat-another";
    })`);
    expect(await isTypedInto()).toBe(true);
  });

  test("a person can restore a deleted message for a while, and then it disappears", async () => {
    await desk.write("first");
    await desk.lastEvent(1);
    const erase = async () => {
      await desk.tab.hover("main .message");
      await desk.tab.click('main .message [aria-label="Delete"]');
    };
    await erase();
    await eventually(() => desk.tab.locator("main .message").count()).toBe(0);
    await desk.tab.click("text=Undo");
    await eventually(() => desk.tab.locator("main .message").count()).toBe(1);
    await erase();
    expect(await desk.lastEvent(2)).toMatchObject({ kind: "deleted" });
  });

  test("the page carries out pending deletions when a person leaves it", async () => {
    await desk.write("first");
    await desk.lastEvent(1);
    await desk.tab.hover("main .message");
    await desk.tab.click('main .message [aria-label="Delete"]');
    await desk.tab.goto("about:blank");
    expect(await desk.lastEvent(2)).toMatchObject({ kind: "deleted" });
    await desk.tab.goto(desk.page.url);
  });

  test("a person can view the steps of an answer after its end, and after a reload", async () => {
    await desk.write("hello");
    const { sink } = await desk.takeUp();
    const step = { id: "1", title: "looking up the time in Tokyo" };
    const draft = { markdown: "It is", buttons: [], streaming: true, steps: [{ ...step, state: "running" as const }] };
    const { id } = await sink.post(draft, "n", signal);
    const summary = desk.tab.locator(".steps summary");
    await eventually(() => summary.innerText()).toBe("looking up the time in Tokyo…");
    const steps = [
      { ...step, state: "done" as const },
      { id: "2", title: "searching", state: "failed" as const },
    ];
    await sink.edit(id, { markdown: "It is late.", buttons: [], streaming: false, steps }, signal);
    await desk.tab.reload();
    await eventually(() => summary.innerText()).toMatch(/^Used 2 tools, /);
    await summary.click();
    expect(await desk.tab.locator(".steps li").allInnerTexts()).toEqual([
      "looking up the time in Tokyo",
      expect.stringMatching(/searching\s+failed/),
    ]);
  });

  test("a person can view an answer as other platforms show it, side by side", async () => {
    const preview = (markdown: string) => Promise.all([slack.toPreview(markdown), discord.toPreview(markdown)]);
    await desk.visit({ preview });
    await answer("Hello <!channel>\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n$x^2$");
    await desk.tab.hover(".message.bot");
    await desk.tab.click('.message.bot [aria-label="How it looks on other platforms"]');
    const column = (name: string) => desk.tab.locator(`.previews section[aria-label=${name}]`);
    await eventually(() => column("Slack").locator("table").count()).toBe(1);
    // Discord shows no tables.
    await eventually(() => column("Discord").locator("pre").count()).toBe(1);
    expect(await column("Discord").locator("table").count()).toBe(0);
    expect(await column("Discord").innerText()).toContain("$x^2$");
    // Each column has the colours and fonts of its platform's app.
    const looks = await Promise.all(
      ["Slack", "Discord"].map((name) =>
        column(name)
          .locator("message-body")
          .first()
          .evaluate((body) => [getComputedStyle(body).fontSize, getComputedStyle(body).color]),
      ),
    );
    expect(looks).toEqual([
      ["15px", "rgb(29, 28, 29)"],
      ["16px", "rgb(49, 51, 56)"],
    ]);
    const [left, right] = await Promise.all(["Slack", "Discord"].map((name) => column(name).boundingBox()));
    expect(left?.y).toBe(right?.y);
    await desk.tab.keyboard.press("Escape");
    await eventually(() => desk.tab.locator(".previews").count()).toBe(0);
  });
});
