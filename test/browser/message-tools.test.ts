import { expect, onTestFinished, test } from "vitest";
import { describeWithBrowser, openBrowser } from "../support/browser.ts";
import { COMPOSER, sitDown } from "../support/desk.ts";
import { eventually } from "../support/eventually.ts";
import { startLocalPage } from "../support/local-page.ts";

const signal = new AbortController().signal;

const whole = (markdown: string) => ({ markdown, buttons: [], streaming: false });

describeWithBrowser("what can be done with a message of the local page in a browser", () => {
  const desk = sitDown();

  test("an answer in several messages is copied whole from each of them, and nothing else with it", async () => {
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

  test("the answer to a question that was deleted is not taken for a part of the answer before it", async () => {
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

  test("a growing answer does not carry away the message that is being edited, and is followed again after it", async () => {
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

describeWithBrowser("the tools of a message where nothing can be hovered over", () => {
  test("the tools of a message take no row of their own, open with a touch, and close with the next", async () => {
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
