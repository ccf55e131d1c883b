import { onTestFinished } from "vitest";
import { createDiscordAdapter } from "../../adapters/discord/adapter.ts";
import { readCustomIds } from "../../adapters/discord/write/draft.ts";
import { type Channel, type Message, shown } from "../../lab/discord-sim/world.ts";
import { silent } from "../../lab/support/log.ts";
import { findCommand } from "../../src/commands/commands.ts";
import type { Adapter } from "../../src/port/adapter.ts";
import type { Action } from "../../src/port/events.ts";
import { readSmallPrint } from "../../src/text/sources.ts";
import { botMessages } from "../adapters/discord/stage.ts";
import { type Discord, startDiscord } from "../support/discord.ts";
import { imagineContract } from "../support/imagine-contract.ts";
import {
  notHere,
  type Said,
  type SayOptions,
  type Shown,
  type ShownPicture,
  type Surface,
  toSourceLine,
} from "../support/surface.ts";
import { surfaceContract } from "../support/surface-contract.ts";
import { startWorld, type World, type WorldOptions } from "../support/surface-world.ts";

/** Other tests check the pace. */
const LIMITS = { limits: { messages: { kind: "fixed" as const, limit: 100, windowMs: 5_000 } } };

/** One run of the bot. */
async function startBot(discord: Discord, world: World) {
  const engine = world.start((): Adapter => adapter);
  const adapter = createDiscordAdapter({
    token: discord.token,
    apiUrl: discord.apiUrl,
    threads: "off",
    commands: engine.commands,
    isListening: engine.isListening,
    listModels: async () => [],
    imagine: engine.imagineMenu,
    scheduleForm: engine.scheduleForm,
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

function idsOf(message: Message): string[] {
  return readCustomIds(shown(message).components);
}

/** Each conversation that a person starts is a thread. */
async function startSurface(options: WorldOptions = {}): Promise<Surface> {
  const discord = await startDiscord(LIMITS);
  const guild = discord.addGuild();
  const channel = discord.addChannel(guild, "general");
  const people = { ada: discord.addUser("Ada", guild), bob: discord.addUser("Bob", guild) };
  const { ada, bob } = people;
  const direct = discord.openDm(ada);
  const world = await startWorld(options, [new URL(discord.apiUrl).origin]);
  const places: Channel[] = [channel, direct];
  const said = new Map<string, Message>();
  let bot = await startBot(discord, world);

  const all = () =>
    places
      .flatMap((place) => botMessages(discord, place))
      .toSorted((one, other) => Number(BigInt(one.id) - BigInt(other.id)));
  function find({ id }: Shown): Message {
    const found = all().find((message) => message.id === id);
    if (found === undefined) throw new Error(`Message ${id} is gone.`);
    return found;
  }
  function findSaid({ id }: Said): Message {
    const found = said.get(id);
    if (found === undefined) throw new Error(`No one has said ${id}.`);
    return found;
  }
  function toShown(message: Message): Shown {
    const { content, attachments } = shown(message);
    const { id, ephemeralFor, channelId } = message;
    const onlyFor = ephemeralFor === bob.id ? "bob" : ephemeralFor || channelId === direct.id ? "ada" : undefined;
    const buttons = idsOf(message).map((customId) => customId.split(":")[0] as Action);
    const { text, lines } = readSmallPrint(content);
    const sources = lines.map(toSourceLine);
    return { id, text, sources, buttons, fileNames: attachments.map(({ name }) => name), onlyFor };
  }
  function toPicture(message: Message): ShownPicture[] {
    const [file] = shown(message).attachments;
    if (file === undefined || !file.name.endsWith(".png")) return [];
    const { name, description = "", bytes } = file;
    return [{ ...toShown(message), name, altText: description, read: async () => bytes }];
  }
  function say(place: Channel | undefined, text: string, { files = [], who = "ada" }: SayOptions): Said {
    if (place === undefined) throw new Error("There is no conversation.");
    const message = discord.people.say(place, people[who], text, { attachments: files });
    said.set(message.id, message);
    return message;
  }
  const mentionOf: Surface["mentionOf"] = (who) => `<@${who === "bot" ? discord.bot.id : people[who].id}>`;

  return {
    world,
    pictures: () => all().flatMap(toPicture),
    notes: () => all().flatMap((message) => (toPicture(message).length > 0 ? [] : [toShown(message)])),
    async ask(text, more = {}) {
      places.push(discord.people.openThread(channel, ada, text));
      return say(places.at(-1), `${mentionOf("bot")} ${text}`, more);
    },
    goOn: async (text, more = {}) => say(places.at(-1), text, more),
    askDirectly: async (text) => say(direct, text, {}),
    mentionOf,
    rewrite: async (one, text) => discord.people.edit(findSaid(one), `${mentionOf("bot")} ${text}`),
    takeBack: async (one) => discord.people.delete(findSaid(one)),
    redeliver: notHere,
    isMarked: (one) => findSaid(one).reactions.has("⏳"),
    command: async (name, text) => void discord.people.command(channel, ada, name, text === undefined ? {} : { text }),
    async chooseCommand(on, name) {
      const title = findCommand(name)?.shortcut?.title ?? name;
      discord.people.contextMenu(findSaid(on), ada, title);
    },
    async imagine(prompt, { files = [], options: { count, ...chosen } = {} } = {}) {
      const images = Object.fromEntries(files.map((file, index) => [`image${index + 1}`, file]));
      const given = { prompt, ...images, ...chosen, ...(count !== undefined && { count: Number(count) }) };
      discord.people.command(channel, ada, "imagine", given);
    },
    pings: () => discord.pings,
    async press(on, action, who = "ada") {
      const message = find(on);
      const id = idsOf(message).find((customId) => customId.split(":")[0] === action);
      discord.people.press(message, people[who], id ?? action);
    },
    async editPicture(picture, prompt) {
      const pressed = discord.people.press(find(picture), ada, "Edit…");
      await discord.until(() => pressed.modal);
      discord.people.submitModal(pressed, { prompt });
    },
    async changeSchedule(on, change) {
      const message = find(on);
      const id = idsOf(message).find((customId) => customId.startsWith("reschedule:")) ?? "";
      const pressed = discord.people.press(message, ada, id);
      await discord.until(() => pressed.modal);
      const fields = JSON.stringify(pressed.modal).matchAll(/"custom_id":"(time|task)".*?"value":"(.*?)"/g);
      const { time = "", task = "" } = Object.fromEntries([...fields].map(([, name, value]) => [name, value]));
      discord.people.submitModal(pressed, change({ time, task }));
      return undefined;
    },
    until: discord.until,
    idle: () => bot.idle(),
    async restart() {
      await bot.stop();
      bot = await startBot(discord, world);
    },
  };
}

surfaceContract("Discord", startSurface, {
  noPrivateWords: "Discord shows an answer to one person only after a slash command or a button",
  noRedelivery: "resumed sessions repeat messages, and no one can make Discord do it at will",
});
imagineContract("Discord", startSurface);
