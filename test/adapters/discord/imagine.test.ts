import { DatabaseSync } from "node:sqlite";
import sharp from "sharp";
import { describe, expect, onTestFinished, test } from "vitest";
import { createDiscordAdapter } from "../../../adapters/discord/index.ts";
import type { Adapter } from "../../../src/adapter.ts";
import { createGateway } from "../../../src/gateway/client.ts";
import { createReferences } from "../../../src/media/reference.ts";
import { startSandbox } from "../../../src/sandbox/server.ts";
import { type Discord, startDiscord } from "../../simulators/discord/index.ts";
import { type Channel, type Message, shown } from "../../simulators/discord/world.ts";
import { startEngine } from "../../support/engine.ts";
import { silent } from "../../support/log.ts";
import { botMessages } from "./stage.ts";

const LIMITS = { limits: { messages: { kind: "fixed" as const, limit: 100, windowMs: 5_000 } } };

async function startGateway(discord: Discord) {
  const trustedFileOrigins = [new URL(discord.apiUrl).origin];
  const speed = { tokensPerSecond: Infinity, requestsPerMinute: Infinity };
  const sandbox = await startSandbox({ host: "127.0.0.1", port: 0, log: silent, trustedFileOrigins, ...speed });
  onTestFinished(() => sandbox.close());
  const gateway = createGateway({ baseUrl: sandbox.url, apiKey: "sk-sandbox-all", log: silent });
  onTestFinished(() => gateway.close());
  return gateway;
}

/** The whole bot, between Discord and a gateway that fetches what it is shown and draws. */
async function startBot(discord: Discord, database = new DatabaseSync(":memory:")) {
  const gateway = await startGateway(discord);
  const adapterOf = (): Adapter => adapter;
  const relay = { publish: () => Promise.reject(new Error("Discord's own links are public.")) };
  const references = createReferences({ adapterOf, relay, relayUrl: () => undefined, maxReferences: 8 });
  const engine = startEngine({ gateway, imageModel: "sandbox-image", references, adapterOf, database });
  const adapter = createDiscordAdapter({
    token: discord.token,
    apiUrl: discord.apiUrl,
    threads: "off",
    commands: [],
    listModels: async () => [],
    imagine: engine.imagineMenu,
    log: silent,
    onFatal: () => {},
    now: discord.clock.now,
  });
  await adapter.listen(engine.accept);
  const stop = async () => {
    await adapter.pause();
    await engine.queue.close(0);
    await adapter.close();
  };
  onTestFinished(stop);
  await discord.until(() => discord.commands().length > 0);
  return { stop, idle: engine.idle };
}

async function startGuild() {
  const discord = await startDiscord(LIMITS);
  const guild = discord.addGuild();
  const channel = discord.addChannel(guild, "general");
  const [ada, bob] = [discord.addUser("ada", guild), discord.addUser("bob", guild)];
  const database = new DatabaseSync(":memory:");
  return { discord, channel, ada, bob, database, bot: await startBot(discord, database) };
}

const pictures = (discord: Discord, channel: Channel) =>
  botMessages(discord, channel).filter((message) => shown(message).attachments.length > 0);

/** The pictures of the bot, when there are so many. */
async function drawn(discord: Discord, channel: Channel, count: number): Promise<Message[]> {
  return discord.until(() => {
    const found = pictures(discord, channel);
    return found.length >= count ? found : undefined;
  });
}

async function red(name: string) {
  const create = { width: 40, height: 40, channels: 3 as const, background: "red" };
  return { name, bytes: new Uint8Array(await sharp({ create }).png().toBuffer()) };
}

describe("pictures on Discord", () => {
  test("are drawn from words and from what was attached, each as a file with its words and buttons", async () => {
    const { discord, channel, ada, bot } = await startGuild();
    const given = { prompt: "a cat", image1: await red("red.png"), ratio: "16:9", count: 2, spoiler: true };
    discord.people.command(channel, ada, "imagine", given);
    const messages = await drawn(discord, channel, 2);
    await bot.idle();
    expect(botMessages(discord, channel)).toEqual(messages);
    for (const message of messages) {
      const { content, attachments, components } = shown(message);
      const [file] = attachments;
      expect(content).toContain("a cat");
      expect(file).toMatchObject({ name: expect.stringMatching(/^SPOILER_a-cat-\d\.png$/), description: "a cat" });
      const { width, height } = await sharp(file?.bytes).metadata();
      expect(width / height).toBeCloseTo(16 / 9, 1);
      expect(JSON.stringify(components)).toMatch(/Again.*Vary.*Edit.*Upscale.*Delete/);
    }
  });

  test("are varied by anybody, edited with a form, and taken back by the one who asked alone", async () => {
    const { discord, channel, ada, bob, bot } = await startGuild();
    discord.people.command(channel, ada, "imagine", { prompt: "a cat" });
    const [first] = await drawn(discord, channel, 1);
    await bot.idle();
    if (first === undefined) throw new Error("There is no picture.");
    discord.people.press(first, bob, "Vary");
    await drawn(discord, channel, 2);
    const pressed = discord.people.press(first, bob, "Edit…");
    await discord.until(() => pressed.modal);
    discord.people.submitModal(pressed, { prompt: "a cat at night" });
    const all = await drawn(discord, channel, 3);
    await bot.idle();
    expect(all.some((message) => shown(message).content.includes("a cat at night"))).toBe(true);
    expect(all.every(({ ephemeralFor }) => ephemeralFor === undefined)).toBe(true);
    discord.people.press(first, bob, "Delete");
    await discord.until(() => botMessages(discord, channel).some(({ ephemeralFor }) => ephemeralFor === bob.id));
    expect(pictures(discord, channel)).toContain(first);
    discord.people.press(first, ada, "Delete");
    await discord.until(() => !pictures(discord, channel).includes(first));
    await bot.idle();
  });

  test("of other people are drawn from, by the menu of their message", async () => {
    const { discord, channel, ada, bob, bot } = await startGuild();
    const said = discord.people.say(channel, bob, "my cat", { attachments: [await red("red.png")] });
    const opened = discord.people.contextMenu(said, ada, "Use as reference");
    await discord.until(() => opened.modal);
    discord.people.submitModal(opened, { prompt: "at night", size: "2K" });
    const [picture] = await drawn(discord, channel, 1);
    await bot.idle();
    expect(picture && shown(picture).content).toMatch(/at night.*2K/);
  });

  test("keep their buttons over a restart", async () => {
    const { discord, channel, ada, bot, database } = await startGuild();
    discord.people.command(channel, ada, "imagine", { prompt: "a cat", image1: await red("red.png") });
    const [first] = await drawn(discord, channel, 1);
    await bot.idle();
    await bot.stop();
    const next = await startBot(discord, database);
    if (first !== undefined) discord.people.press(first, ada, "Again");
    await drawn(discord, channel, 2);
    await next.idle();
    expect(botMessages(discord, channel)).toHaveLength(2);
  });

  test("asked for in private are shown to nobody else, nor is what comes of their buttons", async () => {
    const { discord, channel, ada, bot } = await startGuild();
    discord.people.command(channel, ada, "imagine", { prompt: "a cat", private: true });
    const [first] = await drawn(discord, channel, 1);
    await bot.idle();
    if (first !== undefined) discord.people.press(first, ada, "Vary");
    const all = await drawn(discord, channel, 2);
    await bot.idle();
    expect(all.map(({ ephemeralFor }) => ephemeralFor)).toEqual([ada.id, ada.id]);
  });
});
