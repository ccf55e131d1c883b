import { describe, expect, test } from "vitest";
import type { Channel, Guild, Message } from "../../../../lab/discord-sim/world.ts";
import type { EarlierMessage, MessageEvent } from "../../../../src/port/events.ts";
import { signal, startStage } from "../stage.ts";

const linkTo = (guild: Guild, channel: Channel, { id }: Message) =>
  `https://discord.com/channels/${guild.id}/${channel.id}/${id}`;
const texts = (found: EarlierMessage[] | undefined) => found?.map(({ text }) => text);

/**
 * Three channels: everyone can see the first, everyone except Ada the second, and only Bob the third. Ada asks in a
 * channel and directly.
 */
async function start() {
  const stage = await startStage();
  const { discord, guild, channel, ada, bob, adapter, message } = stage;
  const hidden = { [guild.id]: { deny: ["ViewChannel" as const] } };
  const open = discord.addChannel(guild, "open");
  const hers = discord.addChannel(guild, "hers", { overwrites: hidden });
  const his = discord.addChannel(guild, "his", { overwrites: hidden });
  for (const place of [hers, his]) discord.overwrite(place, discord.bot.id, { allow: ["ViewChannel"] });
  discord.overwrite(hers, ada.id, { allow: ["ViewChannel"] });
  discord.overwrite(his, bob.id, { allow: ["ViewChannel"] });
  const inOpen = discord.people.say(open, bob, "open word");
  const inHers = discord.people.say(hers, ada, "her word");
  const inHis = discord.people.say(his, bob, "his word");
  const asked = discord.people.say(channel, ada, "look", { mentionBot: true });
  const find = async (id: string): Promise<MessageEvent> => {
    for (let index = 0; ; index++) {
      const found = await message(index);
      if (found.messageId.endsWith(id)) return found;
    }
  };
  const inChannel = await find(asked.id);
  const { workspaceId: _, ...direct } = inChannel.reply;
  const alone = { ...inChannel, reply: { ...direct, channelId: "1" } };
  const read = (link: string, to: MessageEvent) => adapter.readLinked?.(link, 100, to, signal);
  return { ...stage, open, hers, his, inOpen, inHers, inHis, inChannel, alone, read };
}

describe("a linked message on Discord", () => {
  test("the bot reads a linked message with the messages around it if everyone on the server can read them", async () => {
    const { discord, guild, open, bob, inOpen, inChannel, read } = await start();
    discord.people.say(open, bob, "more");
    expect(texts(await read(linkTo(guild, open, inOpen), inChannel))).toEqual(["open word", "more"]);
  });

  test("the bot reads a linked message with the thread that contains it or starts at it", async () => {
    const { discord, guild, open, bob, inOpen, inChannel, read } = await start();
    const thread = discord.people.openThread(inOpen, bob, "thread");
    const reply = discord.people.say(thread, bob, "a reply");
    expect(texts(await read(linkTo(guild, open, inOpen), inChannel))).toEqual(["open word", "a reply"]);
    expect(texts(await read(linkTo(guild, thread, reply), inChannel))).toEqual(["open word", "a reply"]);
  });

  test("the bot reads a linked message in a hidden channel only for its members, and only if no one else reads the answer", async () => {
    const { guild, hers, his, inHers, inHis, inChannel, alone, read } = await start();
    expect(await read(linkTo(guild, hers, inHers), inChannel)).toBeUndefined();
    expect(texts(await read(linkTo(guild, hers, inHers), alone))).toEqual(["her word"]);
    expect(await read(linkTo(guild, his, inHis), inChannel)).toBeUndefined();
    expect(await read(linkTo(guild, his, inHis), alone)).toBeUndefined();
  });

  test("the bot does not read a linked message in a private thread, on another server, or at another address", async () => {
    const { discord, guild, open, bob, inChannel, read } = await start();
    const secret = discord.people.openThread(open, bob, "secret", { isPrivate: true });
    discord.people.addToThread(secret, discord.bot);
    const said = discord.people.say(secret, bob, "secret");
    expect(await read(linkTo(guild, secret, said), inChannel)).toBeUndefined();
    const elsewhere = discord.addGuild();
    const place = discord.addChannel(elsewhere, "general");
    const stranger = discord.addUser("eve", elsewhere);
    const theirs = discord.people.say(place, stranger, "theirs");
    expect(await read(linkTo(elsewhere, place, theirs), inChannel)).toBeUndefined();
    expect(await read("https://example.com/channels/1/2/3", inChannel)).toBeUndefined();
  });
});
