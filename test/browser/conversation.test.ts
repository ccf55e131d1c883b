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

  test("a forgotten conversation is gone from every open page, and stays gone", async () => {
    const tab = await openBotPage({ scripts: [["your secret"]] });
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

  test("a question that waits for its turn shows so, also in a thread and before there is a word", async () => {
    const hold = Promise.withResolvers<void>();
    const tab = await openBotPage({ scripts: [[hold.promise, "first"], ["second"]] });
    await tab.click(".sidebar a >> text=general");
    await tab.waitForSelector("h1 >> text=general");
    await say(tab, "@Palaver one");
    await tab.waitForSelector(".thread .message");
    await tab.fill(".thread .composer textarea", "two");
    await tab.press(".thread .composer textarea", "Enter");
    const waiting = tab.locator(".thread .message", { hasText: "waits for its turn" });
    await eventually(() => waiting.count()).toBe(1);
    expect(await waiting.innerText()).toContain("two");
    hold.resolve();
    await tab.waitForSelector(".thread .message.bot >> text=second");
    await eventually(() => waiting.count()).toBe(0);
  });

  test("an answer loses its button once it goes on", async () => {
    const tab = await openBotPage({ scripts: [["The first half", { finish: "length" }], ["and the rest"]] });
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
