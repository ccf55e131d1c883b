import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BrowserContext, type BrowserContextOptions, chromium } from "playwright-core";
import { describe } from "vitest";
import { PATIENCE_MS } from "./patience.ts";

const CHROMIUM = "/usr/bin/chromium";
const ARGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export interface Browser {
  context: BrowserContext;
  close: () => Promise<void>;
}

/** Debian's Chromium with a profile of its own, which is removed at the end. */
export async function openBrowser(options: BrowserContextOptions = {}): Promise<Browser> {
  const folder = await mkdtemp(join(tmpdir(), "palaver-browser-"));
  const context = await chromium.launchPersistentContext(folder, {
    executablePath: CHROMIUM,
    args: ARGS,
    headless: true,
    timeout: PATIENCE_MS,
    ...options,
  });
  context.setDefaultTimeout(PATIENCE_MS);
  return {
    context,
    async close() {
      await context.close();
      await rm(folder, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

/** `describe` where there is a browser; elsewhere a skip that says so, and on a build machine a failure. */
export function describeWithBrowser(name: string, tests: () => void): void {
  const isMissing = !existsSync(CHROMIUM);
  if (isMissing && process.env["CI"] === "true") throw new Error(`These tests need ${CHROMIUM}: install chromium.`);
  describe.skipIf(isMissing)(isMissing ? `${name} (skipped: there is no ${CHROMIUM})` : name, tests);
}
