import { onTestFinished } from "vitest";
import { createDiscordAdapter } from "../../adapters/discord/index.ts";
import type { Adapter } from "../../src/adapter.ts";
import { botMessages } from "../adapters/discord/stage.ts";
import { type Discord, startDiscord } from "../simulators/discord/index.ts";
import { type Channel, type Message, shown } from "../simulators/discord/world.ts";
import { imagineContract } from "../support/imagine-contract.ts";
import { type Shown, type ShownPicture, type Surface, toAction } from "../support/imagine-surface.ts";
import { silent } from "../support/log.ts";
import { type PictureWorld, startPictureWorld } from "../support/picture-world.ts";

/** The pace is another test's matter. */
const LIMITS = { limits: { messages: { kind: "fixed" as const, limit: 100, windowMs: 5_000 } } };

/** One run of the bot. */
async function startBot(discord: Discord, world: PictureWorld) {
  const engine = world.start((): Adapter => adapter);
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

function toShown(message: Message): Shown {
  const { content, components } = shown(message);
  const labels = [...JSON.stringify(components).matchAll(/"label":"([^"]*)"/g)].map(([, label = ""]) => label);
  return { id: message.id, text: content, buttons: labels.map(toAction) };
}

function toPicture(message: Message): ShownPicture[] {
  const [file] = shown(message).attachments;
  if (file === undefined) return [];
  const { name, description = "", bytes } = file;
  return [{ ...toShown(message), name, altText: description, read: async () => bytes }];
}

function readMessages(discord: Discord, channel: Channel) {
  const all = () => botMessages(discord, channel);
  return {
    pictures: () => all().flatMap(toPicture),
    notes: () =>
      all()
        .filter((message) => toPicture(message).length === 0)
        .map(toShown),
    find({ id }: Shown): Message {
      const found = all().find((message) => message.id === id);
      if (found === undefined) throw new Error(`Message ${id} is gone.`);
      return found;
    },
    newest: () => all().at(-1),
  };
}

async function startSurface(): Promise<Surface> {
  const discord = await startDiscord(LIMITS);
  const guild = discord.addGuild();
  const channel = discord.addChannel(guild, "general");
  const people = { ada: discord.addUser("ada", guild), bob: discord.addUser("bob", guild) };
  const world = await startPictureWorld([new URL(discord.apiUrl).origin]);
  const { find, newest, ...seen } = readMessages(discord, channel);
  let bot = await startBot(discord, world);
  return {
    world,
    ...seen,
    async imagine(prompt, { files = [], options: { count, ...options } = {} } = {}) {
      const images = Object.fromEntries(files.map((file, index) => [`image${index + 1}`, file]));
      const chosen = { ...options, ...(count !== undefined && { count: Number(count) }) };
      discord.people.command(channel, people.ada, "imagine", { prompt, ...images, ...chosen });
    },
    async say(text, attachments = []) {
      const replyTo = newest();
      discord.people.say(channel, people.ada, text, { mentionBot: true, attachments, ...(replyTo && { replyTo }) });
    },
    async press(on, action, who = "ada") {
      const message = find(on);
      const label = new RegExp(`"label":"(${action}[^"]*)"`, "i").exec(JSON.stringify(shown(message).components))?.[1];
      discord.people.press(message, people[who], label ?? action);
    },
    async edit(picture, prompt) {
      const pressed = discord.people.press(find(picture), people.ada, "Edit…");
      await discord.until(() => pressed.modal);
      discord.people.submitModal(pressed, { prompt });
    },
    until: <T>(find: () => T | undefined | false, what: string) => discord.until(find, what) as Promise<T>,
    idle: () => bot.idle(),
    async restart() {
      await bot.stop();
      bot = await startBot(discord, world);
    },
  };
}

imagineContract("Discord", startSurface);
