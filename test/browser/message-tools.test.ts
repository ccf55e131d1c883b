import { expect, onTestFinished, test } from "vitest";
import type { Button } from "../../src/port/sink.ts";
import { describeWithBrowser, openBrowser } from "../support/browser.ts";
import { COMPOSER, sitDown } from "../support/desk.ts";
import { eventually } from "../support/eventually.ts";
import { startLocalPage } from "../support/local-page.ts";

const signal = new AbortController().signal;

const whole = (markdown: string) => ({ markdown, buttons: [], streaming: false });

describeWithBrowser("the tools of a message at the local page in a browser", () => {
  const desk = sitDown();

  test("the page copies all messages of a long answer from any of them, without other text", async () => {
    await desk.tab.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await desk.write("a question");
    const { sink } = await desk.takeUp();
    await sink.post(whole("The beginning."), "t:0", signal);
    await sink.upload([{ name: "a.txt", contentType: "", bytes: new Uint8Array([1]) }], whole("A file."), "f", signal);
    await sink.post(whole("The end."), "t:1", signal);
    await desk.write("another question");
    const next = await desk.takeUp(2);
    await next.sink.post(whole("Another answer."), "u:0", signal);
    const copied = async (text: string) => {
      const message = desk.tab.locator(".message", { hasText: text }).last();
      await message.hover();
      await message.locator('[aria-label="Copy the text"]').click();
      await desk.tab.waitForSelector(".notice >> text=Copied");
      return desk.tab.evaluate("navigator.clipboard.readText()");
    };
    for (const part of ["The beginning.", "The end."]) expect(await copied(part)).toBe("The beginning.\n\nThe end.");
    expect(await copied("A file.")).toBe("A file.");
    expect(await copied("Another answer.")).toBe("Another answer.");
    expect(await copied("another question")).toBe("another question");
  });

  test("a growing answer offers only Stop, and its other buttons once it is complete", async () => {
    await desk.write("a question");
    const { sink } = await desk.takeUp();
    const toButton = (action: Button["action"]): Button => ({ action, turnId: "t", label: action });
    const stop = [toButton("stop"), toButton("good")];
    const { id } = await sink.post({ markdown: "It grows", buttons: stop, streaming: true }, "n", signal);
    await desk.tab.waitForSelector(".message.bot .stop");
    expect(await desk.tab.locator(".message.bot button").count()).toBe(1);
    await desk.tab.evaluate(`{
      window.early = 0;
      (function look() {
        const isShown = document.querySelector(".judgement")?.checkVisibility({ visibilityProperty: true }) === true;
        if (isShown && document.querySelector("message-body.growing")) window.early += 1;
        requestAnimationFrame(look);
      })();
    }`);
    const buttons = (["regenerate", "good", "bad"] as const).map(toButton);
    await sink.edit(id, { markdown: "It grows. ".repeat(300), buttons, streaming: false }, signal);
    await desk.tab.waitForSelector(".message.bot .judgement.bad");
    expect(await desk.tab.evaluate("window.early")).toBe(0);
    await desk.tab.setViewportSize({ width: 230, height: 700 });
    const [good, bad] = await Promise.all(
      ["good", "bad"].map((action) => desk.tab.locator(`.judgement.${action}`).boundingBox()),
    );
    expect(good?.y).toBe(bad?.y);
  });

  test("a pager leads to the previous and the next answer, and disables the button at either end", async () => {
    await desk.write("a question");
    const { sink } = await desk.takeUp();
    const toPage = (turnId: string, label: string): Button => ({ action: "show", turnId, label });
    const both = [toPage("t~1", "‹ 2/3"), toPage("t~3", "›")];
    const { id } = await sink.post({ markdown: "two", buttons: both, streaming: false }, "n", signal);
    const pager = desk.tab.locator(".pager");
    await eventually(() => pager.innerText()).toBe("2/3");
    await pager.locator('[aria-label="Previous answer"]').click();
    expect(await desk.lastEvent(2)).toMatchObject({ kind: "action", action: "show", turnId: "t~1" });
    await pager.locator('[aria-label="Next answer"]').click();
    expect(await desk.lastEvent(3)).toMatchObject({ kind: "action", action: "show", turnId: "t~3" });
    await sink.edit(id, { markdown: "one", buttons: [toPage("t~2", "1/2 ›")], streaming: false }, signal);
    await eventually(() => pager.innerText()).toBe("1/2");
    expect(await pager.locator('[aria-label="Previous answer"]').isDisabled()).toBe(true);
    expect(await pager.locator('[aria-label="Next answer"]').isDisabled()).toBe(false);
  });

  test("the page does not take the answer to a deleted question for a part of the previous answer", async () => {
    for (const [index, text] of ["one", "two"].entries()) {
      await desk.write(text);
      const { sink } = await desk.takeUp(index + 1);
      await sink.post(whole(`The answer to ${text}.`), `${text}:0`, signal);
      await sink.post(whole("Its second part."), `${text}:1`, signal);
      await eventually(() => desk.tab.locator(".message.bot").count()).toBe(2 * (index + 1));
    }
    const question = desk.tab.locator(".message:not(.bot)", { hasText: "two" });
    await question.hover();
    await question.locator('[aria-label="Delete"]').click();
    await eventually(() => desk.tab.locator(".message:not(.bot)").count()).toBe(1);
    const heads = await desk.tab
      .locator(".message.bot")
      .evaluateAll((found) => found.map((each) => !each.classList.contains("grouped")));
    expect(heads).toEqual([true, false, true, false]);
  });

  test("a growing answer does not scroll the edited message out of view, and the page follows the answer again after the edit", async () => {
    await desk.write("a question");
    const { sink } = await desk.takeUp();
    const lines = (count: number) => ({ markdown: "a line\n\n".repeat(count), buttons: [], streaming: true });
    const { id } = await sink.post(lines(60), "n", signal);
    const hiddenBelow = () =>
      desk.tab.evaluate(
        "(({ scrollHeight, scrollTop, clientHeight }) => scrollHeight - scrollTop - clientHeight)(document.querySelector('.scroller'))",
      );
    await eventually(() => desk.tab.locator(".message.bot .block").count()).toBe(60);
    await eventually(hiddenBelow).toBeLessThan(2);
    await desk.tab.press(COMPOSER, "ArrowUp");
    const field = desk.tab.locator("textarea.edit");
    await eventually(async () => (await field.boundingBox())?.y).toBeGreaterThan(0);
    await sink.edit(id, lines(90), signal);
    await eventually(() => desk.tab.locator(".message.bot .block").count()).toBe(90);
    await desk.tab.evaluate("new Promise(requestAnimationFrame)");
    expect((await field.boundingBox())?.y).toBeGreaterThan(0);
    await field.press("Escape");
    await eventually(hiddenBelow).toBeLessThan(2);
  });
});

describeWithBrowser("the tools of a message on a device without hover", () => {
  test("a message's tools take no separate row, open with a touch, and close with the next touch", async () => {
    const page = await startLocalPage();
    const browser = await openBrowser({ viewport: { width: 390, height: 780 }, hasTouch: true, isMobile: true });
    onTestFinished(async () => {
      await browser.close();
      await page.close();
    });
    const tab = await browser.context.newPage();
    await tab.goto(page.url);
    for (const text of ["one", "two"]) {
      await tab.fill(COMPOSER, text);
      await tab.press(COMPOSER, "Enter");
    }
    await eventually(() => tab.locator(".message:not(.pending)").count()).toBe(2);
    const second = tab.locator(".message").nth(1);
    const [line, body] = await Promise.all([second.boundingBox(), second.locator("message-body").boundingBox()]);
    expect(line?.height).toBe(body?.height);
    const more = second.locator(".more");
    const edge = await more.boundingBox();
    expect((edge?.x ?? 0) + (edge?.width ?? 0)).toBeLessThanOrEqual(body?.x ?? 0);
    const copy = second.locator('[aria-label="Copy the text"]');
    expect(await copy.isVisible()).toBe(false);
    await more.tap();
    await eventually(() => copy.isVisible()).toBe(true);
    await more.tap();
    await eventually(() => copy.isVisible()).toBe(false);
    await more.tap();
    await tab.locator("h1").tap();
    await eventually(() => copy.isVisible()).toBe(false);
    await more.tap();
    await second.locator('[aria-label="Edit"]').tap();
    await tab.waitForSelector(".editing");
    expect(await tab.evaluate("document.documentElement.scrollWidth")).toBe(390);
  });
});
