import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { startServiceIn } from "../../lab/support/service.ts";
import { start as startSandbox } from "../sandbox/sandbox.ts";
import { describeWithBrowser, openBrowser } from "../support/browser.ts";
import { startDiscord } from "../support/discord.ts";
import { eventually } from "../support/eventually.ts";
import { startSlack } from "../support/slack.ts";
import { answersOf } from "./discord-service.ts";
import { answersIn, makeFolder } from "./slack-service.ts";

describeWithBrowser("the first run, seen from a browser", () => {
  test("the setup in a browser leads from an empty folder to answers on Slack and on Discord", async () => {
    const [gateway, slack, discord] = await Promise.all([startSandbox(), startSlack(), startDiscord()]);
    const ada = slack.user({ name: "Ada" });
    const general = slack.channel({ name: "general", members: [ada] });
    const guild = discord.addGuild();
    const channel = discord.addChannel(guild, "general");
    const bob = discord.addUser("Bob", guild);
    const folder = await makeFolder();
    const standIns = { SLACK_API_URL: slack.apiUrl, DISCORD_API_URL: discord.apiUrl };
    const service = await startServiceIn(folder, standIns);
    onTestFinished(async () => void (await service.end("SIGKILL")));
    const browser = await openBrowser({ viewport: { width: 390, height: 780 } });
    onTestFinished(browser.close);
    const tab = await browser.context.newPage();
    await tab.goto(service.url);
    const wrong = tab.locator(".findings .wrong");
    const right = tab.locator(".findings .right");
    const fill = (name: string, value: string) => tab.fill(`dialog.setup input[name=${name}]`, value);
    const check = () => tab.click("dialog.setup button.primary");

    await tab.click("text=Connect Slack");
    const link = await tab.getByRole("link", { name: "Create the Slack app" }).getAttribute("href");
    const query = new URL(link ?? "").searchParams;
    expect(query.get("new_app")).toBe("1");
    const manifest = JSON.parse(await readFile("manifest.json", "utf8")) as unknown;
    expect(JSON.parse(query.get("manifest_json") ?? "")).toEqual(manifest);
    await fill("SLACK_APP_TOKEN", slack.appToken);
    await fill("SLACK_BOT_TOKEN", slack.appToken);
    await check();
    await eventually(() => wrong.allInnerTexts()).toEqual([expect.stringContaining("must be a bot token (xoxb-…)")]);
    await fill("SLACK_BOT_TOKEN", slack.botToken);
    await check();
    await eventually(() => right.count()).toBe(4);
    expect(await wrong.count()).toBe(0);
    // After Check, the result must be in view on a phone too.
    const last = await right.last().boundingBox();
    expect((last?.y ?? Infinity) + (last?.height ?? 0)).toBeLessThanOrEqual(780);

    await tab.click("dialog.setup nav >> text=Connect Discord");
    await fill("DISCORD_TOKEN", discord.token);
    await check();
    const invite = tab.locator('.findings a[href*="oauth2/authorize"]').first();
    await eventually(() => invite.count()).toBe(1);
    const permissions = new URL((await invite.getAttribute("href")) ?? "").searchParams.get("permissions");
    // The permissions: view, send, send in threads, create threads, read history, react, attach.
    const needed = [10n, 11n, 38n, 35n, 16n, 6n, 15n].reduce((bits, bit) => bits | (1n << bit), 0n);
    expect(BigInt(permissions ?? 0)).toBe(needed);
    expect(await wrong.count()).toBe(0);

    await tab.click("dialog.setup nav >> text=Connect a model");
    await tab.click("dialog.setup .ways >> text=Another one");
    await fill("GATEWAY_BASE_URL", gateway.url);
    await fill("GATEWAY_API_KEY", "sk-sandbox-all");
    await tab.click("text=List the models");
    await tab.selectOption("dialog.setup select[name=CHAT_MODEL]", "sandbox-chat");
    await check();
    await eventually(() => tab.locator(".findings >> text=sandbox-chat answers").count()).toBe(1);
    expect(await wrong.count()).toBe(0);

    await tab.click("dialog.setup nav >> text=Save");
    await tab.click("dialog.setup button:has-text('Write')");
    await tab.waitForSelector("dialog.setup .done");
    expect(await tab.evaluate("JSON.stringify([{ ...localStorage }, { ...sessionStorage }])")).not.toContain("xoxb");
    const path = join(folder, ".env");
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect(service.lines.join("\n")).not.toContain(slack.botToken);
    await service.end("SIGTERM");

    // The page is off from now on, but the open tab still shows arrivals.
    const again = await startServiceIn(folder, { ...standIns, PORT: new URL(service.url).port });
    onTestFinished(async () => void (await again.end("SIGKILL")));
    await tab.waitForSelector("text=Slack is connected. No message has arrived yet.");
    const asked = ada.mention(general, "Say: hello from Slack");
    expect(await answersIn(slack, general, asked)).toEqual(["hello from Slack"]);
    discord.people.say(channel, bob, "Say: hello from Discord", { mentionBot: true });
    const [answer] = await answersOf(discord, channel, 1);
    expect(answer?.states.at(-1)?.content).toBe("hello from Discord");
    for (const name of ["Slack", "Discord"])
      await tab.waitForSelector(`text=The first message from ${name} has arrived.`);
    expect(again.lines.join("\n")).toContain("The first message from Slack has arrived");
  });
});
