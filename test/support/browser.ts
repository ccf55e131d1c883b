import { type BrowserContext, type BrowserContextOptions, type Browser as Chromium, chromium } from "playwright-core";
import { describe } from "vitest";
import { PATIENCE_MS } from "../../lab/support/patience.ts";
import { CHROMIUM } from "./chromium.ts";

const ARGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  // There are few tabs, and a separate process is a third of a tab's cost.
  "--renderer-process-limit=1",
  "--disable-site-isolation-trials",
];

export interface Browser {
  context: BrowserContext;
  close: () => Promise<void>;
}

/** One browser for all tests in this process, because a start costs as much as a test. It ends with the process. */
let running: Promise<Chromium> | undefined;

/** A separate browser context in Debian's Chromium. It stores nothing on disk. */
export async function openBrowser(options: BrowserContextOptions = {}): Promise<Browser> {
  if (!(await running)?.isConnected()) {
    running = chromium.launch({
      executablePath: CHROMIUM ?? "chromium",
      args: ARGS,
      headless: true,
      timeout: PATIENCE_MS,
    });
  }
  const context = await (await running)?.newContext(options);
  if (context === undefined) throw new Error("There is no Chromium.");
  context.setDefaultTimeout(PATIENCE_MS);
  await keepRenderer(context);
  return { context, close: () => context.close() };
}

/**
 * A site's renderer process ends with the site's last tab. An empty page keeps it for the next tabs, because a process
 * and its compiled scripts are half of a tab's cost.
 */
async function keepRenderer(context: BrowserContext): Promise<void> {
  const empty = await context.newPage();
  await empty.route("**", (route) => route.fulfill({ contentType: "text/html", body: "" }));
  await empty.goto("http://127.0.0.1/");
}

/** `describe` if there is a browser. Otherwise skips with that reason, or fails on a build machine. */
export function describeWithBrowser(name: string, tests: () => void): void {
  const isMissing = CHROMIUM === undefined;
  if (isMissing && process.env["CI"] === "true") throw new Error("These tests need a browser: install chromium.");
  describe.skipIf(isMissing)(isMissing ? `${name} (skipped: chromium is not installed)` : name, tests);
}
