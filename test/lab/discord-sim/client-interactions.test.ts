import {
  ActionRowBuilder,
  ApplicationCommandType,
  type AutocompleteInteraction,
  ButtonBuilder,
  type ButtonInteraction,
  ButtonStyle,
  type ChatInputCommandInteraction,
  type Client,
  ContextMenuCommandBuilder,
  Events,
  FileUploadBuilder,
  type Interaction,
  LabelBuilder,
  type MessageContextMenuCommandInteraction,
  MessageFlags,
  ModalBuilder,
  type ModalSubmitInteraction,
  SlashCommandBuilder,
} from "discord.js";
import { describe, expect, test } from "vitest";
import { shown } from "../../../lab/discord-sim/world.ts";
import { startDiscord } from "../../support/discord.ts";
import { startClient } from "../../support/discord-client.ts";

const COMMANDS = [
  new SlashCommandBuilder()
    .setName("imagine")
    .setDescription("Draw")
    .addStringOption((option) => option.setName("prompt").setDescription("What").setRequired(true))
    .addStringOption((option) => option.setName("model").setDescription("Which").setAutocomplete(true))
    .addAttachmentOption((option) => option.setName("image").setDescription("Reference")),
  new ContextMenuCommandBuilder().setName("Ask about this").setType(ApplicationCommandType.Message),
];

async function startBot() {
  const discord = await startDiscord();
  const guild = discord.addGuild();
  const channel = discord.addChannel(guild, "general");
  const ada = discord.addUser("ada", guild);
  const client = await startClient(discord);
  await client.application.commands.set(COMMANDS);
  return { discord, guild, channel, ada, client };
}

/** The next interaction. Its kind must be the one that the test caused. */
const nextInteraction = <T extends Interaction>(client: Client) =>
  new Promise<T>((resolve) => client.once(Events.InteractionCreate, (interaction) => resolve(interaction as T)));

describe("discord.js with simulated interactions", () => {
  test("discord.js defers a command, reads its file, edits its answer and follows up privately", async () => {
    const { discord, channel, ada, client } = await startBot();
    const coming = nextInteraction<ChatInputCommandInteraction>(client);
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

  test("discord.js suggests values while a user types", async () => {
    const { discord, channel, ada, client } = await startBot();
    const coming = nextInteraction<AutocompleteInteraction>(client);
    const proposed = discord.people.autocomplete(channel, ada, "imagine", "model", { prompt: "x", model: "sand" });
    const interaction = await coming;
    expect(interaction.options.getFocused(true)).toMatchObject({ name: "model", value: "sand" });
    await interaction.respond([{ name: "Sandbox", value: "sandbox-image" }]);
    expect(await proposed).toEqual([{ name: "Sandbox", value: "sandbox-image" }]);
  });

  test("discord.js reads the message of a context menu", async () => {
    const { discord, channel, ada, client } = await startBot();
    const said = discord.people.say(channel, ada, "What is this?");
    const coming = nextInteraction<MessageContextMenuCommandInteraction>(client);
    discord.people.contextMenu(said, ada, "Ask about this");
    const interaction = await coming;
    expect(interaction.targetMessage.content).toBe("What is this?");
    await interaction.reply("A question");
  });

  test("discord.js handles a button", async () => {
    const { discord, channel, ada, client } = await startBot();
    const button = new ButtonBuilder().setCustomId("stop:1").setLabel("Stop").setStyle(ButtonStyle.Secondary);
    const components = [new ActionRowBuilder<ButtonBuilder>().addComponents(button)];
    const place = await client.channels.fetch(channel.id);
    if (!place?.isSendable()) throw new Error("Not a text channel.");
    const sent = await place.send({ content: "Growing", components });
    const [message] = discord.messages(channel);
    if (message === undefined) throw new Error("No message.");
    const coming = nextInteraction<ButtonInteraction>(client);
    const pressed = discord.people.press(message, ada, "Stop");
    const interaction = await coming;
    expect([interaction.customId, interaction.message.id, interaction.user.id]).toEqual(["stop:1", sent.id, ada.id]);
    await interaction.deferUpdate();
    expect(pressed.acknowledgedAs).toBe(6);
    await sent.edit({ content: "Stopped", components: [] });
    expect(shown(message)).toMatchObject({ content: "Stopped", components: [] });
  });

  test("discord.js shows a form and reads its uploaded files", async () => {
    const { discord, channel, ada, client } = await startBot();
    const coming = nextInteraction<ChatInputCommandInteraction>(client);
    const asked = discord.people.command(channel, ada, "imagine", { prompt: "x" });
    const upload = new FileUploadBuilder().setCustomId("files").setMinValues(1);
    const label = new LabelBuilder().setLabel("References").setFileUploadComponent(upload);
    const interaction = await coming;
    await interaction.showModal(new ModalBuilder().setCustomId("refs").setTitle("Refs").addLabelComponents(label));
    const submitted = nextInteraction<ModalSubmitInteraction>(client);
    discord.people.submitModal(asked, { files: [{ name: "cat.png", bytes: Buffer.from("png") }] });
    const form = await submitted;
    expect(form.fields.getUploadedFiles("files")?.first()?.name).toBe("cat.png");
    await form.reply("Thanks");
    expect(discord.messages(channel)).toHaveLength(1);
  });

  test("discord.js gets 40060 if another session acknowledged first", async () => {
    const { discord, channel, ada, client } = await startBot();
    const second = await startClient(discord);
    const both = [client, second].map((one) => nextInteraction<ChatInputCommandInteraction>(one));
    discord.people.command(channel, ada, "imagine", { prompt: "x" });
    const [fast, slow] = await Promise.all(both);
    await fast?.reply("mine");
    await expect(slow?.reply("mine")).rejects.toMatchObject({ code: 40060 });
  });
});
