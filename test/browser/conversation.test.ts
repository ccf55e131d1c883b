import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { describeWithBrowser } from "../support/browser.ts";
import { openBotPage } from "../support/browser-bot.ts";
import { COMPOSER } from "../support/desk.ts";
import { eventually } from "../support/eventually.ts";

describeWithBrowser("a conversation with the bot, seen from a browser", () => {
  async function say(tab: Page, text: string): Promise<void> {
    await tab.fill(COMPOSER, text);
    await tab.press(COMPOSER, "Enter");
  }

  test("a forgotten conversation disappears from every open page, and stays away", async () => {
    const tab = await openBotPage({ scripts: [["your secret"]] });
    await say(tab, "my secret");
    await tab.waitForSelector(".message.bot >> text=your secret");
    const other = await tab.context().newPage();
    await other.goto(tab.url());
    await other.waitForSelector(".message.bot >> text=your secret");
    await say(tab, "/forget conversation");
    for (const each of [tab, other]) {
      await each.waitForSelector(".message.bot >> text=Erased 2 messages");
      await eventually(() => each.locator(".message").count()).toBe(2);
    }
    expect(await tab.locator("text=secret").count()).toBe(0);
    await tab.reload();
    await tab.waitForSelector(".message.bot >> text=Erased 2 messages");
    expect(await tab.locator("text=secret").count()).toBe(0);
    await say(tab, "and so on");
    await tab.waitForSelector(".sidebar a >> text=and so on");
  });

  test("a waiting question is shown as waiting, even before the first word", async () => {
    const hold = Promise.withResolvers<void>();
    const tab = await openBotPage({ scripts: [[hold.promise, "first"], ["second"]] });
    await say(tab, "one");
    await tab.waitForSelector(".progress");
    await say(tab, "two");
    const waiting = tab.locator(".message", { hasText: "waiting its turn" });
    await eventually(() => waiting.count()).toBe(1);
    expect(await waiting.innerText()).toContain("two");
    hold.resolve();
    await tab.waitForSelector(".message.bot >> text=second");
    await eventually(() => waiting.count()).toBe(0);
  });
});
