import type { Page } from "playwright-core";
import { onTestFinished } from "vitest";
import { type EngineOptions, startEngine } from "../../lab/support/engine.ts";
import { openBrowser } from "./browser.ts";
import { type LocalPage, startLocalPage } from "./local-page.ts";

/** A browser tab at the page of a whole bot, with the test's own model. Everything ends with the test. */
export async function openBotPage(options: EngineOptions): Promise<Page> {
  let page: LocalPage | undefined;
  const engine = startEngine({
    ...options,
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
