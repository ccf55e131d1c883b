import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { PASSWORD } from "../../lab/support/administrator.ts";
import { message } from "../../lab/support/events.ts";
import { GatewayError } from "../../src/gateway/errors.ts";
import { type Browser, describeWithBrowser, openBrowser } from "../support/browser.ts";
import { startReplica } from "../support/dashboard.ts";
import { eventually } from "../support/eventually.ts";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const PAGES = ["overview", "trends", "failures", "conversations", "doctor", "settings"];
const SIZES = [
  { width: 1280, height: 900 },
  { width: 390, height: 844 },
];

describeWithBrowser("the dashboard, seen from a browser", () => {
  let browser: Browser;
  // The page's own policy allows no other script.
  beforeAll(async () => void (browser = await openBrowser({ bypassCSP: true })));
  afterAll(() => browser.close());

  async function open(url: string): Promise<{ tab: Page; problems: string[] }> {
    const tab = await browser.context.newPage();
    const problems: string[] = [];
    tab.on("pageerror", (error) => problems.push(String(error)));
    onTestFinished(() => tab.close());
    await tab.goto(`${url}/admin`);
    await tab.fill("#password", PASSWORD);
    await tab.press("#password", "Enter");
    await tab.waitForSelector(".figures");
    return { tab, problems };
  }

  async function startWithPast() {
    const broken = new GatewayError("interrupted", "cut");
    const replica = await startReplica({ scripts: [["Hello."], ["So far", broken], ["And", new Promise(() => {})]] });
    for (const id of ["a", "b"]) {
      await replica.accept(message("hi", { conversationId: `test:${id}`, at: Date.now() }));
      await replica.idle();
    }
    await replica.accept(message("hi", { conversationId: "test:c", at: Date.now() }));
    return replica;
  }

  test("the dashboard shows running answers without a reload, and a person can stop them with the keyboard", async () => {
    const replica = await startReplica({ scripts: [["Well,", new Promise(() => {})]] });
    const { tab, problems } = await open(replica.url);
    await tab.getByText("No answer is running.").waitFor();
    await tab.getByText("questions waiting").waitFor();
    await replica.accept(message("hi", { at: Date.now() }));
    const stop = tab.getByRole("button", { name: "Stop the answer to Ada at Test · Acme · #general" });
    await stop.focus();
    await tab.keyboard.press("Enter");
    await tab.getByText("No answer is running.").waitFor();
    expect(replica.texts().join("\n")).toContain("`an administrator` stopped this answer.");
    expect(problems).toEqual([]);
  });

  test("every page of the dashboard is accessible and fits, wide and narrow, light and dark", async () => {
    const { url } = await startWithPast();
    const { tab, problems } = await open(url);
    for (const page of PAGES) {
      await tab.goto(`${url}/admin/${page}`);
      await tab.waitForSelector("table, .plot, .story, .finding, .facts");
      for (const fold of await tab.locator(".fold").all()) await fold.click();
      for (const size of SIZES) {
        for (const colorScheme of ["light", "dark"] as const) {
          await tab.setViewportSize(size);
          await tab.emulateMedia({ colorScheme });
          await tab.evaluate(AXE);
          const violations = await tab.evaluate<string[]>(
            "axe.run().then(({ violations }) => violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`))",
          );
          expect([page, size.width, colorScheme, violations]).toEqual([page, size.width, colorScheme, []]);
          expect([page, await tab.evaluate("document.documentElement.scrollWidth")]).toEqual([page, size.width]);
        }
      }
    }
    expect(problems).toEqual([]);
  });

  test("a story on the dashboard unfolds, and its messages open on demand", async () => {
    const replica = await startWithPast();
    const { tab } = await open(replica.url);
    await tab.getByRole("link", { name: "Failures" }).click();
    await eventually(() => tab.evaluate("document.activeElement.id")).toBe("page");
    await tab.locator(".fold").first().press("Enter");
    await tab.getByText("The answer broke off before it was finished.").waitFor();
    expect(await tab.getByText("So far").count()).toBe(0);
    await tab.getByRole("button", { name: "Open the messages" }).press("Enter");
    await tab.getByText("So far").waitFor();
    expect(replica.acts).toHaveLength(1);
  });

  test("a reason on the overview leads to its failures, and another reason can be selected", async () => {
    const { url } = await startWithPast();
    const { tab, problems } = await open(url);
    await tab.getByRole("link", { name: "The answer broke off before it was finished" }).click();
    await tab.locator(".story").waitFor();
    const choice = tab.getByLabel("Reason");
    expect(await choice.inputValue()).toBe("The answer broke off before it was finished");
    await tab.getByRole("link", { name: "Conversations" }).click();
    await eventually(() => tab.locator(".story").count()).toBe(2);
    await tab.getByLabel("How it ended").selectOption("Answered");
    await eventually(() => tab.locator(".story").count()).toBe(1);
    expect(problems).toEqual([]);
  });

  test("an expired session leads back to the password", async () => {
    const { url } = await startReplica();
    const { tab } = await open(url);
    await tab.getByRole("button", { name: "Sign out" }).click();
    await tab.waitForSelector("#password");
    await tab.fill("#password", "wrong password");
    await tab.press("#password", "Enter");
    await tab.getByText("Wrong password.").waitFor();
  });
});
