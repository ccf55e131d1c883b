import { type BrowserContext, type BrowserContextOptions, type Browser as Chromium, chromium } from "playwright-core";
import { describe } from "vitest";
import { CHROMIUM } from "./chromium.ts";
import { PATIENCE_MS } from "./patience.ts";

const ARGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  // The tabs are few, and a process for each is a third of what opening it costs.
  "--renderer-process-limit=1",
  "--disable-site-isolation-trials",
];

export interface Browser {
  context: BrowserContext;
  close: () => Promise<void>;
}

/** One for all tests of this process: to start it costs as much as a test. It ends with the process. */
let running: Promise<Chromium> | undefined;

/** A browser that knows nothing of the others, in Debian's Chromium. It keeps nothing on the disk. */
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
 * The process that draws the pages of a site ends with the last of them. A page that is empty keeps it for the tabs
 * that follow: a process and its compiled scripts are half of what each of them costs.
 */
async function keepRenderer(context: BrowserContext): Promise<void> {
  const empty = await context.newPage();
  await empty.route("**", (route) => route.fulfill({ contentType: "text/html", body: "" }));
  await empty.goto("http://127.0.0.1/");
}

/** `describe` where there is a browser; elsewhere a skip that says so, and on a build machine a failure. */
export function describeWithBrowser(name: string, tests: () => void): void {
  const isMissing = CHROMIUM === undefined;
  if (isMissing && process.env["CI"] === "true") throw new Error("These tests need a browser: install chromium.");
  describe.skipIf(isMissing)(isMissing ? `${name} (skipped: chromium is not installed)` : name, tests);
}
