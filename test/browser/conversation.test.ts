import type { Page } from "playwright-core";
import { expect, onTestFinished, test } from "vitest";
import { describeWithBrowser, openBrowser } from "../support/browser.ts";
import { COMPOSER, eventually } from "../support/desk.ts";
import { startEngine } from "../support/engine.ts";
import type { Step } from "../support/fake-gateway.ts";
import { type LocalPage, startLocalPage } from "../support/local-page.ts";

describeWithBrowser("a conversation with the bot, seen from a browser", () => {
  /** A tab at the page of a bot that answers as the scripts say. */
  async function sitDown(...scripts: Step[][]): Promise<Page> {
    let page: LocalPage | undefined;
    const engine = startEngine({
      scripts,
      adapterOf: () => {
        if (page === undefined) throw new Error("The page is not there yet.");
        return page.adapter;
      },
    });
    page = await startLocalPage({ accept: engine.accept });
    const { url, close } = page;
    const browser = await openBrowser({ viewport: { width: 1000, height: 700 } });
    onTestFinished(async () => {
      await browser.close();
      await close();
      await engine.queue.close(0);
    });
    const tab = await browser.context.newPage();
    await tab.goto(url);
    return tab;
  }

  async function say(tab: Page, text: string): Promise<void> {
    await tab.fill(COMPOSER, text);
    await tab.press(COMPOSER, "Enter");
  }

  test("is gone from every open page, and stays gone, once it is forgotten", async () => {
    const tab = await sitDown(["your secret"]);
    await say(tab, "my secret");
    await tab.waitForSelector(".message.bot >> text=your secret");
    const other = await tab.context().newPage();
    await other.goto(tab.url());
    await other.waitForSelector(".message.bot >> text=your secret");
    await say(tab, "/forget conversation");
    for (const each of [tab, other]) {
      await each.waitForSelector(".message.bot >> text=Erased: 2 messages");
      await eventually(() => each.locator(".message").count()).toBe(2);
    }
    expect(await tab.locator("text=secret").count()).toBe(0);
    await tab.reload();
    await tab.waitForSelector(".message.bot >> text=Erased: 2 messages");
    expect(await tab.locator("text=secret").count()).toBe(0);
    await say(tab, "and so on");
    await tab.waitForSelector(".sidebar a >> text=and so on");
  });

  test("shows an answer without its button once that goes on", async () => {
    const tab = await sitDown(["The first half", { finish: "length" }], ["and the rest"]);
    await say(tab, "Tell me everything");
    await tab.click(".buttons .continue");
    await tab.waitForSelector(".message.bot >> text=and the rest");
    expect(await tab.locator(".buttons .continue").count()).toBe(0);
    await eventually(() => tab.locator(".message.bot message-body").allInnerTexts()).toEqual([
      "The first half",
      "and the rest",
    ]);
  });
});
