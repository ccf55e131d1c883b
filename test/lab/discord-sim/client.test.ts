import { Events, type Message, MessageFlags, type PartialMessage, ThreadAutoArchiveDuration } from "discord.js";
import { describe, expect, test } from "vitest";
import { shown } from "../../../lab/discord-sim/world.ts";
import { nextMessage, startBot } from "../../support/discord-client.ts";

describe("discord.js with simulated messages", () => {
  test("discord.js receives a mention, replies with a nonce and edits", async () => {
    const { discord, channel, ada, client } = await startBot();
    const heard = nextMessage(client);
    const said = discord.people.say(channel, ada, "hello", { mentionBot: true });
    const message = await heard;
    expect(message.content).toBe(`<@${discord.bot.id}> hello`);
    expect(message.mentions.has(discord.bot.id, { ignoreEveryone: true, ignoreRoles: true })).toBe(true);
    expect(message.member?.displayName).toBe("ada");

    const nonce = message.id;
    const reply = await message.reply({ content: "Hi", nonce, enforceNonce: true, flags: MessageFlags.SuppressEmbeds });
    const same = await message.reply({ content: "Hi again", nonce, enforceNonce: true });
    expect(same.id).toBe(reply.id);
    await reply.edit("Hi there");
    const [, answer] = discord.messages(channel);
    expect(answer?.reference?.messageId).toBe(said.id);
    expect(answer?.states.map(({ content, flags }) => [content, flags])).toEqual([
      ["Hi", 4],
      ["Hi there", 4],
    ]);
    await message.react("👀");
    expect([...(discord.messages(channel)[0]?.reactions.keys() ?? [])]).toEqual(["👀"]);
    expect(discord.pings).toEqual([]);
  });

  test("discord.js knows the bot's managed role in a mention, and its permissions in a channel", async () => {
    const { discord, guild, channel, ada, client } = await startBot();
    const heard = nextMessage(client);
    const role = [...guild.roles.values()].find(({ botId }) => botId === discord.bot.id);
    discord.people.say(channel, ada, `<@&${role?.id}> hello`);
    const message = await heard;
    expect(message.guild?.roles.botRoleFor(discord.bot.id)?.id).toBe(role?.id);
    expect(message.mentions.roles.has(role?.id ?? "")).toBe(true);
    const place = message.inGuild() ? message.channel : undefined;
    expect(place?.permissionsFor(client.user)?.has("SendMessages")).toBe(true);
    expect(place?.permissionsFor(client.user)?.has("ManageMessages")).toBe(false);
  });

  test("discord.js receives direct messages and answers them", async () => {
    const { discord, ada, client } = await startBot();
    const dm = discord.openDm(ada);
    const heard = nextMessage(client);
    discord.people.say(dm, ada, "just us");
    const message = await heard;
    expect(message.channel.isDMBased()).toBe(true);
    await message.reply("yes");
    expect(discord.messages(dm).map((one) => shown(one).content)).toEqual(["just us", "yes"]);
  });

  test("discord.js drops direct messages without a channel type, which Discord can send", async () => {
    const { discord, channel, ada, client } = await startBot({ rules: { sendsChannelType: false } });
    const heard = nextMessage(client);
    discord.people.say(discord.openDm(ada), ada, "just us");
    const said = discord.people.say(channel, ada, "all of us");
    expect((await heard).id).toBe(said.id);
  });

  test("discord.js receives edits, previews and deletions", async () => {
    const { discord, channel, ada, client } = await startBot();
    const heard = nextMessage(client);
    const said = discord.people.say(channel, ada, "helo");
    await heard;
    const updates: (number | null)[] = [];
    client.on(Events.MessageUpdate, (_, message) => updates.push(message.editedTimestamp));
    const gone = new Promise<Message | PartialMessage>((resolve) => client.once(Events.MessageDelete, resolve));
    discord.people.unfurl(said);
    discord.people.edit(said, "hello");
    discord.people.delete(said);
    expect((await gone).id).toBe(said.id);
    expect(updates.map((at) => at === null)).toEqual([true, false]);
  });

  test("discord.js opens threads, writes in them and follows a forum post", async () => {
    const { discord, guild, channel, ada, client } = await startBot();
    const heard = nextMessage(client);
    discord.people.say(channel, ada, "question");
    const message = await heard;
    const thread = await message.startThread({ name: "answer", autoArchiveDuration: ThreadAutoArchiveDuration.OneDay });
    await thread.send("Here");
    expect((await thread.fetchStarterMessage())?.content).toBe("question");
    await expect(message.startThread({ name: "again" })).rejects.toThrow();

    const created = new Promise<string>((resolve) => client.once(Events.ThreadCreate, ({ id }) => resolve(id)));
    const first = nextMessage(client);
    const forum = discord.addChannel(guild, "help", { kind: "forum" });
    const post = discord.people.postInForum(forum, ada, "title", "how?", { mentionBot: true });
    expect([await created, (await first).id]).toEqual([post.id, post.id]);
  });

  test("discord.js uploads files and reads those of others", async () => {
    const { discord, channel, ada, client } = await startBot();
    const heard = nextMessage(client);
    discord.people.say(channel, ada, "look", { attachments: [{ name: "a.txt", bytes: Buffer.from("abc") }] });
    const message = await heard;
    const [attachment] = message.attachments.values();
    expect(await (await fetch(attachment?.url ?? "")).text()).toBe("abc");
    await message.reply({ content: "mine", files: [{ attachment: Buffer.from("xyz"), name: "b.txt" }] });
    const [, answer] = discord.messages(channel);
    const [file] = answer === undefined ? [] : shown(answer).attachments;
    expect([file?.name, Buffer.from(file?.bytes ?? []).toString()]).toEqual(["b.txt", "xyz"]);
    expect(discord.requests.at(-1)?.fileNames).toEqual(["b.txt"]);
  });

  test("discord.js gets refusals with the codes for which it has classes", async () => {
    const { discord, guild, channel, client } = await startBot({ allow: { "invalid-request": 1 } });
    const mute = discord.addChannel(guild, "mute", { overwrites: { [guild.id]: { deny: ["SendMessages"] } } });
    const place = await client.channels.fetch(mute.id);
    if (!place?.isSendable()) throw new Error("Not a text channel.");
    await expect(place.send("x")).rejects.toMatchObject({ name: "DiscordAPIError[50013]", status: 403 });
    const open = await client.channels.fetch(channel.id);
    if (!open?.isSendable()) throw new Error("Not a text channel.");
    await expect(open.send("x".repeat(2001))).rejects.toMatchObject({ code: 50035 });
  });
});
