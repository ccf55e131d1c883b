import { expect, test } from "vitest";
import type { Setup } from "../../src/port/setup.ts";
import { GATEWAY_STEP } from "../../src/setup/gateway.ts";
import { describeWithBrowser } from "../support/browser.ts";
import { sitDown } from "../support/desk.ts";

const SETUP: Setup = {
  isConfigured: () => true,
  steps: () => [GATEWAY_STEP],
  check: async () => [],
  listModels: async () => ({ models: [], findings: [] }),
  target: () => undefined,
  toEnvFile: (values) => ({ text: "", problems: [`Given: ${Object.keys(values).join(", ")}.`] }),
  save: () => [],
};

describeWithBrowser("the setup in a browser on another machine", () => {
  const desk = sitDown();

  test("asks for ADMIN_PASSWORD before it shows its steps, and keeps a key for one address only", async () => {
    await desk.tab.setExtraHTTPHeaders({ "X-Forwarded-For": "203.0.113.7" });
    await desk.visit({ setup: SETUP, adminPassword: "an-administrator-€" });
    await desk.tab.getByRole("button", { name: "Set up…" }).click();
    const password = desk.tab.getByLabel("Administrator's password");
    await password.fill("a guess");
    await password.press("Enter");
    await desk.tab.getByText("That is not ADMIN_PASSWORD.").waitFor();
    await password.fill("an-administrator-€");
    await password.press("Enter");
    await desk.tab.getByText("OpenRouter", { exact: true }).click();
    const key = desk.tab.locator('input[name="GATEWAY_API_KEY"]');
    await key.fill("key-for-openrouter");
    await desk.tab.getByText("OpenAI", { exact: true }).click();
    expect(await key.inputValue()).toBe("");
    await desk.tab.locator('input[name="GATEWAY_BASE_URL"]').fill("https://elsewhere.example");
    await desk.tab.getByRole("button", { name: "Save…" }).click();
    await desk.tab.getByText("Given: GATEWAY_BASE_URL.").waitFor();
  });
});
