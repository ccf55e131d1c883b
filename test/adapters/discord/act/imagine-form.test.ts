import { describe, expect, test } from "vitest";
import type { Interaction } from "../../../../lab/discord-sim/interaction.ts";
import { type Message, type Payload, shown, type User } from "../../../../lab/discord-sim/world.ts";
import type { ImagineMenu } from "../../../../src/port/catalogue.ts";
import type { CommandEvent } from "../../../../src/port/events.ts";
import { NO_RIGHT } from "../../../../src/port/right.ts";
import type { Button } from "../../../../src/port/sink.ts";
import {
  botMessage,
  botMessages,
  botTexts,
  draft,
  type StageOptions,
  signal,
  startAdapter,
  startStage,
} from "../stage.ts";

const GET_MESSAGE = "GET /channels/:channel/messages/:message";
const png = (name: string, size = 1) => ({ name, bytes: new Uint8Array(size).fill(size) });
const MENU: ImagineMenu = {
  ratios: ["1:1", "16:9"],
  sizes: ["1K", "2K", "4K"],
  maxCount: 4,
  maxReferences: 8,
  listModels: async () => ["draw-large", "draw-small"],
  describe: async () => ({
    prompt: "a cat",
    options: { ratio: "16:9", size: "2K", model: "draw-small", spoiler: "true" },
  }),
};
const BUTTONS = (["again", "vary", "edit", "upscale", "delete"] as const).map((action): Button => {
  return { action, turnId: "0123456789abcdef0123", label: action };
});

const CAT = { name: "cat.png", contentType: "image/png", bytes: new Uint8Array([1, 2]) };
const CAPTION = draft("a cat", { buttons: BUTTONS });

async function startPictures({
  imagine,
  ...options
}: Omit<StageOptions, "imagine"> & { imagine?: Partial<ImagineMenu> } = {}) {
  const stage = await startStage({ imagine: { ...MENU, ...imagine }, ...options });
  await stage.discord.until(() => stage.discord.commands().length > 0);
  async function command(index: number): Promise<CommandEvent> {
    const event = await stage.event(index);
    if (event.kind !== "command") throw new Error(`Event ${index} is no command but ${event.kind}.`);
    return event;
  }
  return { ...stage, command };
}

type Pictures = Awaited<ReturnType<typeof startPictures>>;

async function startPicture(
  options: Parameters<typeof startPictures>[0] & { isPrivate?: boolean; isDirect?: boolean } = {},
) {
  const { isPrivate = false, isDirect = false, ...rest } = options;
  const stage = await startPictures(rest);
  const { discord, adapter, ada, command } = stage;
  const channel = isDirect ? discord.openDm(ada) : stage.channel;
  discord.people.command(channel, ada, "imagine", { prompt: "a cat", private: isPrivate });
  const asked = await command(0);
  await adapter.sink(asked.reply, NO_RIGHT).upload([CAT], CAPTION, "picture", signal);
  return { ...stage, channel, asked, picture: botMessage(discord, channel) };
}

async function shownForm({ discord }: Pick<Pictures, "discord">, asked: Interaction): Promise<Payload> {
  return discord.until(() => asked.modal, "a form");
}

function fieldsOf(form: Payload): Record<string, Payload> {
  const holders = form["components"] as { component: Payload }[];
  return Object.fromEntries(holders.map(({ component }) => [String(component["custom_id"]), component]));
}

async function openEdit({ discord, picture }: Pick<Pictures, "discord"> & { picture: Message }, person: User) {
  const pressed = discord.people.press(picture, person, "edit");
  return { pressed, fields: fieldsOf(await shownForm({ discord }, pressed)) };
}

function chosenIn(field: Payload | undefined): unknown {
  return (field?.["options"] as Payload[] | undefined)?.find((option) => option["default"] === true)?.["value"];
}

const names = ({ attachments = [] }: CommandEvent) => attachments.map(({ name }) => name);

describe("/imagine", () => {
  test("/imagine offers choices and eight reference images", async () => {
    const { discord } = await startPictures();
    const command = discord.commands().find(({ name }) => name === "imagine");
    const options = command?.options ?? [];
    const images = Array.from({ length: 8 }, (_, index) => `image${index + 1}`);
    const names = options.map(({ name }) => name);
    expect(names).toEqual(["prompt", ...images, "ratio", "size", "count", "model", "private", "spoiler"]);
    expect(options.find(({ name }) => name === "ratio")?.choices?.map(({ value }) => value)).toEqual(MENU.ratios);
    expect(options.find(({ name }) => name === "count")).toMatchObject({ min_value: 1, max_value: 4 });
  });

  test("the bot acknowledges /imagine at once, and passes the command on with its images in order", async () => {
    const { discord, channel, ada, command } = await startPictures();
    const asked = discord.people.command(channel, ada, "imagine", {
      prompt: "a cat",
      image2: png("two.png", 2),
      image1: png("one.png"),
      ratio: "16:9",
      count: 2,
      spoiler: true,
    });
    const event = await command(0);
    await discord.until(() => asked.acknowledgedAs === 5);
    expect(event).toMatchObject({
      name: "imagine",
      text: "a cat",
      options: { ratio: "16:9", count: "2", spoiler: "true" },
      conversationId: `discord:${channel.id}:${asked.id}`,
    });
    expect(names(event)).toEqual(["one.png", "two.png"]);
    // These files can be read only through their link, and only while Discord keeps them.
    expect(event.attachments?.every(({ isFleeting }) => isFleeting === true)).toBe(true);
    expect(event.reply.visibleTo).toBeUndefined();
    expect(JSON.parse(JSON.stringify(event))).toEqual(event);
  });

  test("an /imagine in a direct conversation belongs to that conversation, and so do its forms", async () => {
    const stage = await startPicture({ isDirect: true });
    const { discord, channel, ada, asked, command } = stage;
    const { pressed } = await openEdit(stage, ada);
    discord.people.submitModal(pressed, { prompt: "a dog" });
    for (const event of [asked, await command(1)]) {
      expect(event).toMatchObject({ conversationId: `discord:${channel.id}`, author: { id: ada.id } });
    }
  });

  test("the bot shows the image of a private /imagine in private", async () => {
    const { picture, ada } = await startPicture({ isPrivate: true });
    expect(picture.ephemeralFor).toBe(ada.id);
  });

  test("/imagine suggests the image models", async () => {
    const { discord, channel, ada } = await startPictures({ listModels: async () => ["chat-large"] });
    const choices = await discord.people.autocomplete(channel, ada, "imagine", "model", { prompt: "", model: "lar" });
    expect(choices).toEqual([{ name: "draw-large", value: "draw-large" }]);
  });

  test("the bot posts the image in the channel once the interaction of its /imagine expires", async () => {
    const { discord, adapter, channel, ada, command } = await startPictures();
    discord.people.command(channel, ada, "imagine", { prompt: "a cat" });
    const sink = adapter.sink((await command(0)).reply, NO_RIGHT);
    await sink.post(draft("Drawing"), "status", signal);
    discord.clock.advance(15 * 60_000);
    const { attachments } = await sink.upload([CAT], CAPTION, "picture", signal);
    const [, picture] = botMessages(discord, channel);
    expect(picture && shown(picture).attachments.map(({ name }) => name)).toEqual(["cat.png"]);
    expect(picture?.webhookId).toBeUndefined();
    expect(attachments).toMatchObject([{ platform: "discord", name: "cat.png", sizeBytes: 2 }]);
  });
});

describe("the buttons of an image", () => {
  test.each(["again", "vary", "upscale"])("the button %s creates an image that everyone sees", async (action) => {
    const { discord, adapter, channel, bob, picture, asked, event } = await startPicture();
    const pressed = discord.people.press(picture, bob, action);
    const press = await event(1);
    await discord.until(() => pressed.acknowledgedAs === 6);
    expect(press).toMatchObject({ kind: "action", action, turnId: BUTTONS[0]?.turnId, author: { name: "bob" } });
    expect(press.conversationId).toBe(asked.conversationId);
    await adapter.sink(press.reply, NO_RIGHT).post(draft("here"), "n:1", signal);
    // A message for the user who pressed the button stays private.
    await adapter.sink({ ...press.reply, visibleTo: bob.id }, NO_RIGHT).post(draft("psst"), "n:2", signal);
    expect(botMessages(discord, channel).map(({ ephemeralFor }) => ephemeralFor)).toEqual([
      undefined,
      undefined,
      bob.id,
    ]);
  });

  test("the bot answers each button of an image once, even if a crash interrupts the answer", async () => {
    const { discord, adapter, channel, bob, picture, event } = await startPicture();
    discord.people.press(picture, bob, "vary");
    const { reply } = await event(1);
    await adapter.sink(reply, NO_RIGHT).upload([CAT], CAPTION, "next:1", signal);
    const next = await startAdapter(discord, { listens: false });
    const sink = next.adapter.sink(reply, NO_RIGHT);
    expect((await sink.upload([CAT], CAPTION, "next:1", signal)).attachments).toMatchObject([{ name: "cat.png" }]);
    await sink.upload([{ ...CAT, bytes: new Uint8Array([1, 2, 4]) }], CAPTION, "next:2", signal);
    expect(botMessages(discord, channel)).toHaveLength(3);
  });

  test("a button of a private image creates another private image", async () => {
    const { discord, ada, picture, event } = await startPicture({ isPrivate: true });
    discord.people.press(picture, ada, "again");
    expect((await event(1)).reply.visibleTo).toBe(ada.id);
  });

  test("only the user who presses Delete sees the bot's reply", async () => {
    const { discord, bob, picture, event } = await startPicture();
    discord.people.press(picture, bob, "delete");
    expect(await event(1)).toMatchObject({ action: "delete", reply: { visibleTo: bob.id } });
  });

  test("Edit opens a form filled in with the image's prompt and options, and submitting it becomes a command", async () => {
    const stage = await startPicture();
    const { discord, bob, command } = stage;
    const { pressed, fields } = await openEdit(stage, bob);
    await discord.until(() => pressed.acknowledgedAs === 9);
    expect(fields["prompt"]?.["value"]).toBe("a cat");
    expect(["ratio", "size", "model"].map((name) => chosenIn(fields[name]))).toEqual(["16:9", "2K", "draw-small"]);
    const sent = discord.people.submitModal(pressed, {
      prompt: "a cat at night",
      size: "4K",
      images: [png("moon.png")],
    });
    const event = await command(1);
    await discord.until(() => sent.acknowledgedAs === 5);
    expect(event).toMatchObject({
      name: "imagine",
      text: "a cat at night",
      author: { name: "bob" },
      options: { ratio: "16:9", size: "4K", model: "draw-small", basis: BUTTONS[0]?.turnId, spoiler: "true" },
    });
    expect(names(event)).toEqual(["moon.png"]);
    expect(event.reply.visibleTo).toBeUndefined();
  });

  test("Edit keeps the image's model even if it is not among the 25 in the menu", async () => {
    const listed = [...Array.from({ length: 30 }, (_, index) => `draw-${index}`), "draw-small"];
    const stage = await startPicture({ imagine: { listModels: async () => listed } });
    const { pressed, fields } = await openEdit(stage, stage.bob);
    expect(chosenIn(fields["model"])).toBe("draw-small");
    stage.discord.people.submitModal(pressed, { prompt: "a dog" });
    expect((await stage.command(1)).options).toMatchObject({ model: "draw-small" });
  });

  test("Edit looks up the image's options for the user who pressed it, in that user's channel", async () => {
    const asked: unknown[] = [];
    const describe: ImagineMenu["describe"] = async (...args) => void asked.push(args);
    const stage = await startPicture({ imagine: { describe } });
    const { guild, channel, bob } = stage;
    await openEdit(stage, bob);
    const reply = { platform: "discord", channelId: channel.id, workspaceId: guild.id };
    expect(asked).toMatchObject([[BUTTONS[0]?.turnId, { author: { id: bob.id }, reply }, {}]]);
  });

  test("Edit of a private image creates a private one", async () => {
    const stage = await startPicture({ isPrivate: true });
    const { pressed } = await openEdit(stage, stage.ada);
    stage.discord.people.submitModal(pressed, { prompt: "a dog" });
    expect((await stage.command(1)).reply.visibleTo).toBe(stage.ada.id);
  });

  test.each([
    [
      "the stored prompt is late",
      { describe: () => new Promise<never>(() => {}), listModels: () => new Promise<never>(() => {}) },
    ],
    [
      "the store is away",
      { describe: () => Promise.reject(new Error("away")), listModels: () => Promise.reject(new Error("away")) },
    ],
    ["the prompt is no longer stored", { describe: async () => undefined, listModels: async () => [] }],
  ])("Edit opens an empty form if %s", async (_, imagine) => {
    const stage = await startPicture({ imagine });
    const { pressed, fields } = await openEdit(stage, stage.ada);
    expect(fields["prompt"]?.["value"]).toBeUndefined();
    expect(Object.keys(fields)).toEqual(["prompt", "images", "ratio", "size"]);
    stage.discord.people.submitModal(pressed, { prompt: "a dog" });
    expect((await stage.command(1)).options).toEqual({ basis: BUTTONS[0]?.turnId });
  });

  test("buttons of an image still work after a restart", async () => {
    const stage = await startPicture();
    const { discord } = stage;
    await stage.adapter.close();
    const next = await startAdapter(discord, { imagine: MENU });
    const { pressed } = await openEdit(stage, stage.ada);
    await next.adapter.close();
    const last = await startAdapter(discord, { imagine: MENU });
    discord.people.submitModal(pressed, { prompt: "a dog" });
    expect(await last.event(0)).toMatchObject({ kind: "command", options: { basis: BUTTONS[0]?.turnId } });
  });
});

describe("the menu of a message with images", () => {
  async function openForm(stage: Pictures, message: Message) {
    const { discord, ada } = stage;
    const opened = discord.people.contextMenu(message, ada, "Use as reference");
    return { opened, form: await shownForm(stage, opened) };
  }

  /** Ada opens the form for Bob's message with these files. */
  async function offer(...attachments: ReturnType<typeof png>[]) {
    const stage = await startPictures();
    const { discord, channel, bob } = stage;
    const said = discord.people.say(channel, bob, "look", { attachments });
    return { ...stage, ...(await openForm(stage, said)) };
  }

  test("the menu of a message opens a form that offers the message's images as references", async () => {
    const { discord, command, opened, form } = await offer(png("one.png"), png("notes.txt"), png("two.jpg", 2));
    expect(Object.keys(fieldsOf(form))).toEqual(["prompt", "ratio", "size", "count", "model"]);
    discord.people.submitModal(opened, { prompt: "at night", count: "3" });
    const event = await command(0);
    expect(event).toMatchObject({
      name: "imagine",
      text: "at night",
      options: { count: "3" },
      author: { name: "ada" },
    });
    expect(names(event)).toEqual(["one.png", "two.jpg"]);
  });

  test("the menu of a message finds the images of a forwarded message", async () => {
    const stage = await startPictures();
    const { discord, channel, ada, bob, command } = stage;
    const said = discord.people.say(channel, bob, "look", { attachments: [png("one.png")] });
    const { opened } = await openForm(stage, discord.people.forward(said, channel, ada));
    discord.people.submitModal(opened, { prompt: "at night" });
    expect(names(await command(0))).toEqual(["one.png"]);
  });

  test("the menu of a message finds images even if the bot cannot read the channel", async () => {
    const stage = await startPictures();
    const { discord, channel, bob, command } = stage;
    const said = discord.people.say(channel, bob, "look", { attachments: [png("one.png")] });
    discord.overwrite(channel, discord.bot.id, { deny: ["ReadMessageHistory"] });
    const { opened } = await openForm(stage, said);
    discord.people.submitModal(opened, { prompt: "at night" });
    expect(names(await command(0))).toEqual(["one.png"]);
  });

  test("a process that did not open the form reads the message's images again", async () => {
    const { discord, adapter, opened } = await offer(png("notes.txt"), png("one.png"));
    await adapter.close();
    const next = await startAdapter(discord, { imagine: MENU });
    discord.people.submitModal(opened, { prompt: "at night" });
    const event = await next.event(0);
    expect(event.kind === "command" && names(event)).toEqual(["one.png"]);
    expect(discord.requests.filter(({ route }) => route === GET_MESSAGE)).toHaveLength(1);
  });

  test("a forged form cannot read a message of another channel", async () => {
    const { discord, guild, channel, ada, bob, events, heard, opened, form } = await offer(png("one.png"));
    const secret = discord.addChannel(guild, "secret");
    discord.overwrite(secret, ada.id, { deny: ["ViewChannel"] });
    const hidden = discord.people.say(secret, bob, "look", { attachments: [png("hidden.png")] });
    const modal = { ...form, custom_id: `form:reference:${secret.id}:${hidden.id}` };
    discord.people.submitModal({ ...opened, modal }, { prompt: "at night" });
    await discord.until(() => botTexts(discord, channel).some((text) => text.includes("no longer works")));
    await heard(channel, ada);
    expect(events).toEqual([]);
    expect(discord.requests.filter(({ route }) => route === GET_MESSAGE)).toEqual([]);
  });

  test("a user cannot get the images of another user's form", async () => {
    const { discord, bob, command, opened } = await offer(png("one.png"));
    discord.people.submitModal({ ...opened, user: bob }, { prompt: "at night" });
    expect(names(await command(0))).toEqual(["one.png"]);
    // The message is read again, as any user with access to the channel could.
    expect(discord.requests.filter(({ route }) => route === GET_MESSAGE)).toHaveLength(1);
  });

  test("the menu of a message reports that the message has no images", async () => {
    const { discord, channel, ada, bob } = await startPictures();
    const said = discord.people.say(channel, bob, "words", { attachments: [png("notes.txt")] });
    const opened = discord.people.contextMenu(said, ada, "Use as reference");
    await discord.until(() => botMessages(discord, channel).length === 1);
    expect(opened.modal).toBeUndefined();
    expect(botMessages(discord, channel)[0]?.ephemeralFor).toBe(ada.id);
  });
});
