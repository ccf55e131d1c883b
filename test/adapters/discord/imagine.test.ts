import sharp from "sharp";
import { describe, expect, test } from "vitest";
import type { Discord } from "../../simulators/discord/index.ts";
import { type Channel, type Message, shown } from "../../simulators/discord/world.ts";
import { startPictureStage } from "./picture-stage.ts";
import { botMessages } from "./stage.ts";

async function startGuild() {
  const stage = await startPictureStage();
  return { ...stage, bot: await stage.startBot() };
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
    const { discord, channel, ada, bot, startBot } = await startGuild();
    discord.people.command(channel, ada, "imagine", { prompt: "a cat", image1: await red("red.png") });
    const [first] = await drawn(discord, channel, 1);
    await bot.idle();
    await bot.stop();
    const next = await startBot();
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
