import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { silent } from "../../lab/support/log.ts";
import { createGateway } from "../../src/gateway/client.ts";
import { startSandbox } from "../../src/sandbox/server.ts";
import { defineTool } from "../../src/tools/tool.ts";
import { describeWithBrowser } from "../support/browser.ts";
import { openBotPage } from "../support/browser-bot.ts";
import { COMPOSER } from "../support/desk.ts";
import { eventually } from "../support/eventually.ts";

/** Three tools: the test ends the first one, the second one fails, and the third one never returns. */
function makeTools() {
  const asked: string[] = [];
  const weather = Promise.withResolvers<string>();
  const options = { schema: z.object({ city: z.string() }), description: "Tells about a city." };
  const tools = [
    defineTool({
      ...options,
      name: "weather",
      timeoutMs: 20_000,
      run: async ({ city }) => {
        asked.push(city);
        return weather.promise;
      },
      describeCall: () => "looking out of the window",
    }),
    defineTool({
      ...options,
      name: "traffic",
      timeoutMs: 1_000,
      run: () => Promise.reject(new Error("secret detail of the failure")),
      describeCall: () => "counting cars",
    }),
    defineTool({
      ...options,
      name: "gossip",
      timeoutMs: 1_500,
      run: () => new Promise<string>(() => {}),
      describeCall: () => "listening at the door",
    }),
  ];
  return { tools, asked, answerWeather: weather.resolve };
}

describeWithBrowser("tools, seen from a browser", () => {
  test("several tools run in parallel with their progress; one fails, one never returns, and the answer comes", async () => {
    const { tools, asked, answerWeather } = makeTools();
    const sandbox = await startSandbox({ host: "127.0.0.1", port: 0, log: silent, tokensPerSecond: Infinity });
    const gateway = createGateway({ baseUrl: sandbox.url, apiKey: "sk-sandbox-all", log: silent });
    onTestFinished(async () => {
      await gateway.close();
      await sandbox.close();
    });
    const tab = await openBotPage({ gateway, model: "sandbox-chat", tools });
    await tab.fill(COMPOSER, "Use weather, traffic and gossip, city: Lisbon");
    await tab.press(COMPOSER, "Enter");

    const progress = tab.locator(".progress");
    await eventually(() => progress.innerText()).toContain("looking out of the window");
    await eventually(() => progress.innerText()).toContain("listening at the door");
    // The tool that never returns times out while the first one is still running.
    await eventually(() => progress.innerText()).not.toContain("listening at the door");
    expect(await progress.innerText()).toContain("looking out of the window");
    answerWeather("sunny, 24 degrees");

    const answer = tab.locator(".message.bot message-body").last();
    await eventually(() => answer.innerText()).toContain("sunny, 24 degrees");
    await eventually(() => answer.innerText()).toMatch(/traffic.*failed/s);
    await eventually(() => answer.innerText()).toMatch(/gossip.*timed out/s);
    expect(await answer.innerText()).not.toContain("secret detail");
    await eventually(() => progress.count()).toBe(0);
    expect(asked).toEqual(["Lisbon"]);
  });
});
