import { startPictureStage } from "../adapters/discord/picture-stage.ts";
import { botMessages } from "../adapters/discord/stage.ts";
import type { Discord } from "../simulators/discord/index.ts";
import { type Channel, type Message, shown } from "../simulators/discord/world.ts";
import { imagineContract } from "../support/imagine-contract.ts";
import { type Shown, type ShownPicture, type Surface, toAction } from "../support/imagine-surface.ts";

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
  const { discord, channel, ada, bob, world, startBot } = await startPictureStage();
  const people = { ada, bob };
  const { find, newest, ...seen } = readMessages(discord, channel);
  let bot = await startBot();
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
      bot = await startBot();
    },
  };
}

imagineContract("Discord", startSurface);
