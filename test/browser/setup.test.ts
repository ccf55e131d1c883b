import { expect, test } from "vitest";
import type { Setup } from "../../src/port/setup.ts";
import { GATEWAY_STEP } from "../../src/setup/gateway.ts";
import { describeWithBrowser } from "../support/browser.ts";
import { sitDown } from "../support/desk.ts";

const ABOUT = { kept: { entries: 0, conversations: 0 }, used: "" };

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

  test("setup asks for ADMIN_PASSWORD before it shows its steps, and keeps a key only for the address it was entered for", async () => {
    await desk.tab.setExtraHTTPHeaders({ "X-Forwarded-For": "203.0.113.7" });
    await desk.visit({ setup: SETUP, adminPassword: "an-administrator-€" });
    await desk.tab.getByRole("button", { name: "Set up…" }).click();
    const password = desk.tab.getByLabel("Administrator's password");
    await password.fill("a guess");
    await password.press("Enter");
    await desk.tab.getByText("This is not the administrator's password.").waitFor();
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

describeWithBrowser("the setup in a browser on this machine", () => {
  const desk = sitDown({
    setup: {
      ...SETUP,
      listModels: async () => ({ models: ["the-one"], findings: [] }),
      check: async () => [
        { ok: true, what: "It is there.", link: { label: "Add to a server", url: "https://example.com/" } },
      ],
    },
  });

  test("setup marks a step only if its fields are filled in and work, and selects the only model", async () => {
    const { tab } = desk;
    await tab.getByRole("button", { name: "Connect a model" }).click();
    const check = tab.getByRole("button", { name: "Check" });
    const done = tab.locator("dialog.setup nav .icon");
    const chat = tab.locator("[name=CHAT_MODEL]");
    await check.click();
    expect(await chat.evaluate((field) => field.matches(":invalid:focus"))).toBe(true);
    expect(await done.count()).toBe(0);
    await tab.getByRole("button", { name: "List the models" }).click();
    await tab.getByText("The gateway lists one model.").waitFor();
    expect(await chat.inputValue()).toBe("the-one");
    expect(await done.count()).toBe(0);
    await check.click();
    await tab.getByRole("link", { name: "Add to a server" }).waitFor();
    expect(await done.count()).toBe(1);
    // The results belonged to the previous value.
    await tab.locator("[name=GATEWAY_API_KEY]").fill("another");
    expect(await done.count()).toBe(0);
    await tab.getByText("The gateway lists one model.").waitFor({ state: "detached" });
  });

  test("setup warns before it writes a value that did not work, and reports after the restart that the model answers", async () => {
    const { tab } = desk;
    let isRight = false;
    const readAbout = async () => ({ ...ABOUT, model: "the-one" });
    const setup: Setup = {
      ...SETUP,
      check: async () => [{ ok: isRight, what: "The key is checked." }],
      target: () => "/palaver/.env",
      toEnvFile: () => ({ text: "CHAT_MODEL=the-one", problems: [] }),
    };
    await desk.visit({ setup, isSandbox: true, readAbout: async () => ({ ...ABOUT, model: "sandbox-chat" }) });
    await tab.getByRole("button", { name: "Connect a model" }).click();
    await tab.locator("[name=CHAT_MODEL]").fill("the-one");
    const save = tab.getByRole("button", { name: "Save…" });
    await tab.getByRole("button", { name: "Check" }).click();
    await tab.getByText("The key is checked.").waitFor();
    await save.click();
    await tab.getByText("The check of Gateway found a problem").waitFor();
    await tab.getByRole("button", { name: "Write /palaver/.env anyway" }).waitFor();
    isRight = true;
    await tab.getByRole("navigation", { name: "Steps" }).getByRole("button", { name: "Connect a model" }).click();
    await tab.getByRole("button", { name: "Check" }).click();
    await tab.locator(".findings .right").waitFor();
    await save.click();
    await tab.getByRole("button", { name: "Write /palaver/.env", exact: true }).click();
    await tab.getByText("the-one does not answer here yet.").waitFor();
    const { database } = desk.page;
    await desk.stopServer();
    await desk.startServerAgain({ database, setup, readAbout });
    await tab.getByText("Connected: the-one answers.").waitFor();
  });
});
