import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect } from "vitest";
import type { InboundEvent, MessageEvent } from "../../src/port/events.ts";
import { NO_RIGHT } from "../../src/port/right.ts";
import type { ReplySink } from "../../src/port/sink.ts";
import { type Browser, openBrowser } from "./browser.ts";
import { eventually } from "./eventually.ts";
import { type LocalPage, type LocalPageOptions, startLocalPage } from "./local-page.ts";

export const COMPOSER = "main .composer textarea";

/** A person at the local page, and the bot's side of the page. Each test has a fresh server and a fresh tab. */
export interface Desk {
  readonly tab: Page;
  readonly page: LocalPage;
  write: (text: string, composer?: string) => Promise<void>;
  /** The newest message, when `count` events were accepted, and the sink for its answer. */
  takeUp: (count?: number) => Promise<{ event: MessageEvent; sink: ReplySink }>;
  /** The newest event, when exactly `count` events were accepted. */
  lastEvent: (count: number) => Promise<InboundEvent | undefined>;
  /** From now on, the queue refuses all events, or accepts them again. */
  refuse: (isRefusing: boolean) => void;
  /** Opens another server's page instead of the first one. */
  visit: (options: LocalPageOptions) => Promise<void>;
  stopServer: () => Promise<void>;
  startServerAgain: (options: LocalPageOptions) => Promise<void>;
}

/**
 * Call it once in a `describe`. `given` is for each test's page. If the browser reports a problem, the current test
 * fails.
 */
export function sitDown(given: LocalPageOptions = {}): Desk {
  let browser: Browser;
  let page: LocalPage;
  let tab: Page;
  let port = 0;
  let isRefusing = false;
  const problems: string[] = [];

  async function start(options: LocalPageOptions = {}): Promise<void> {
    const accept = async () => {
      if (isRefusing) throw new Error("the disk is full");
    };
    page = await startLocalPage({ accept, port, ...options });
    port = Number(new URL(page.url).port);
  }

  beforeAll(async () => {
    browser = await openBrowser({ viewport: { width: 1200, height: 800 } });
  });
  afterAll(() => browser.close());

  beforeEach(async () => {
    isRefusing = false;
    port = 0;
    problems.length = 0;
    await start(given);
    tab = await openTab(browser, page.url, problems);
  });
  afterEach(async () => {
    await tab.evaluate("localStorage.clear()");
    await tab.close();
    await page.close();
    expect(problems).toEqual([]);
  });

  return {
    get tab() {
      return tab;
    },
    get page() {
      return page;
    },
    async write(text, composer = COMPOSER) {
      await tab.fill(composer, text);
      await tab.press(composer, "Enter");
    },
    async takeUp(count = 1) {
      await eventually(() => page.events.length).toBeGreaterThanOrEqual(count);
      const event = page.events.at(-1);
      if (event?.kind !== "message") throw new Error("No message was accepted.");
      return { event, sink: page.adapter.sink(event.reply, NO_RIGHT) };
    },
    async lastEvent(count) {
      await eventually(() => page.events.length).toBe(count);
      return page.events.at(-1);
    },
    refuse: (refusing) => void (isRefusing = refusing),
    async visit(options) {
      const before = page;
      port = 0;
      await start(options);
      await tab.goto(page.url);
      await tab.waitForSelector(".welcome");
      await before.close();
    },
    stopServer: () => page.close(),
    startServerAgain: start,
  };
}

async function openTab(browser: Browser, url: string, problems: string[]): Promise<Page> {
  const tab = await browser.context.newPage();
  tab.on("pageerror", (error) => problems.push(String(error)));
  tab.on("console", (message) => {
    const isRefusal = message.text().startsWith("Failed to load resource");
    if (message.type() === "error" && !isRefusal) problems.push(message.text());
  });
  await tab.goto(url);
  await tab.waitForSelector(".welcome");
  return tab;
}
