import sharp from "sharp";
import { describe, expect, onTestFinished, test } from "vitest";
import { type Channel, type Message, shown } from "../../../lab/discord-sim/world.ts";
import type { Adapter } from "../../../src/port/adapter.ts";
import { type Discord, startDiscord } from "../../support/discord.ts";
import { startWorld } from "../../support/surface-world.ts";
import { botMessages, startAdapter } from "./stage.ts";

async function startGuild() {
  const discord = await startDiscord({ limits: { messages: { kind: "fixed", limit: 100, windowMs: 5_000 } } });
  const guild = discord.addGuild();
  const channel = discord.addChannel(guild, "general");
  const [ada, bob] = [discord.addUser("ada", guild), discord.addUser("bob", guild)];
  const world = await startWorld({}, [new URL(discord.apiUrl).origin]);
  const { accept, imagineMenu, queue, idle } = world.start((): Adapter => adapter);
  onTestFinished(() => queue.close(0));
  const { adapter } = await startAdapter(discord, { accept, imagine: imagineMenu });
  await discord.until(() => discord.commands().length > 0);
  return { discord, channel, ada, bob, idle };
}

const pictures = (discord: Discord, channel: Channel) =>
  botMessages(discord, channel).filter((message) => shown(message).attachments.length > 0);

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

describe("images on Discord", () => {
  test("an image with the option spoiler is covered", async () => {
    const { discord, channel, ada, idle } = await startGuild();
    discord.people.command(channel, ada, "imagine", { prompt: "a cat", spoiler: true });
    const [picture] = await drawn(discord, channel, 1);
    await idle();
    expect(picture && shown(picture).attachments.map(({ name }) => name)).toEqual(["SPOILER_a-cat.png"]);
  });

  test("the menu of a message creates an image from another user's image", async () => {
    const { discord, channel, ada, bob, idle } = await startGuild();
    const said = discord.people.say(channel, bob, "my cat", { attachments: [await red("red.png")] });
    const opened = discord.people.contextMenu(said, ada, "Use as reference");
    await discord.until(() => opened.modal);
    discord.people.submitModal(opened, { prompt: "at night", size: "2K" });
    const [picture] = await drawn(discord, channel, 1);
    await idle();
    expect(picture && shown(picture).content).toMatch(/at night.*2K/);
  });

  test("a private image and the images from its buttons are visible to one user only", async () => {
    const { discord, channel, ada, idle } = await startGuild();
    discord.people.command(channel, ada, "imagine", { prompt: "a cat", private: true });
    const [first] = await drawn(discord, channel, 1);
    await idle();
    if (first !== undefined) discord.people.press(first, ada, "Vary");
    const all = await drawn(discord, channel, 2);
    await idle();
    expect(all.map(({ ephemeralFor }) => ephemeralFor)).toEqual([ada.id, ada.id]);
  });
});
