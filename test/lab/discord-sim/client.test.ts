import {
  type ChatInputCommandInteraction,
  type Client,
  Events,
  MessageFlags,
  SlashCommandBuilder,
  ThreadAutoArchiveDuration,
} from "discord.js";
import { describe, expect, test } from "vitest";
import { shown } from "../../../lab/discord-sim/world.ts";
import { nextMessage, startBot, startClient } from "../../support/discord-client.ts";

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

  test("discord.js drops direct messages without a channel type, which Discord can send", async () => {
    const { discord, channel, ada, client } = await startBot({ rules: { sendsChannelType: false } });
    const heard = nextMessage(client);
    discord.people.say(discord.openDm(ada), ada, "just us");
    const said = discord.people.say(channel, ada, "all of us");
    expect((await heard).id).toBe(said.id);
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

const IMAGINE = new SlashCommandBuilder()
  .setName("imagine")
  .setDescription("Draw")
  .addStringOption((option) => option.setName("prompt").setDescription("What").setRequired(true))
  .addAttachmentOption((option) => option.setName("image").setDescription("Reference"));

async function startCommand() {
  const scene = await startBot();
  await scene.client.application.commands.set([IMAGINE]);
  return scene;
}

const nextCommand = (client: Client) =>
  new Promise<ChatInputCommandInteraction>((resolve) =>
    client.once(Events.InteractionCreate, (command) => resolve(command as ChatInputCommandInteraction)),
  );

describe("discord.js with simulated interactions", () => {
  test("discord.js defers a command, reads its file, edits its answer and follows up privately", async () => {
    const { discord, channel, ada, client } = await startCommand();
    const coming = nextCommand(client);
    const image = { name: "cat.png", bytes: Buffer.from("png") };
    const asked = discord.people.command(channel, ada, "imagine", { prompt: "a cat", image });
    const interaction = await coming;
    expect(interaction.options.getString("prompt")).toBe("a cat");
    expect(interaction.options.getAttachment("image")?.contentType).toBe("image/png");
    expect(interaction.attachmentSizeLimit).toBe(10 * 2 ** 20);
    const deferred = await interaction.deferReply({ withResponse: true });
    expect(deferred.resource?.message?.id).toBe(asked.original?.id);
    expect(deferred.resource?.message?.interactionMetadata?.user.id).toBe(ada.id);
    await interaction.editReply({ content: "Done", files: [{ attachment: Buffer.from("pic"), name: "out.png" }] });
    await interaction.followUp({ content: "psst", flags: MessageFlags.Ephemeral });
    const seen = discord.messages(channel).map((message) => [shown(message).content, message.ephemeralFor]);
    expect(seen).toEqual([
      ["Done", undefined],
      ["psst", ada.id],
    ]);
    await expect(interaction.reply("x")).rejects.toThrow();
  });

  test("discord.js gets 40060 if another session acknowledged first", async () => {
    const { discord, channel, ada, client } = await startCommand();
    const second = await startClient(discord);
    const both = [client, second].map((one) => nextCommand(one));
    discord.people.command(channel, ada, "imagine", { prompt: "x" });
    const [fast, slow] = await Promise.all(both);
    await fast?.reply("mine");
    await expect(slow?.reply("mine")).rejects.toMatchObject({ code: 40060 });
  });
});
