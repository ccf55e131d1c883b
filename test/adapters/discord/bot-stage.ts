import { DatabaseSync } from "node:sqlite";
import { onTestFinished } from "vitest";
import { createDiscordAdapter } from "../../../adapters/discord/adapter.ts";
import type { Channel } from "../../../lab/discord-sim/world.ts";
import { openBotStores } from "../../../lab/support/bot-store.ts";
import { LIMITS, watchIdle } from "../../../lab/support/engine.ts";
import { fakeGateway, type Step } from "../../../lab/support/fake-gateway.ts";
import { silent } from "../../../lab/support/log.ts";
import { noLinks } from "../../../lab/support/picture-turn.ts";
import { createEngine } from "../../../src/app/engine.ts";
import type { Policy } from "../../../src/config/policy/policy-file.ts";
import { createMetrics } from "../../../src/metrics/metrics.ts";
import { createScheduler } from "../../../src/pacing/scheduler.ts";
import type { Tool } from "../../../src/tools/tool.ts";
import { type Discord, type DiscordOptions, startDiscord } from "../../support/discord.ts";
import { botTexts } from "./stage.ts";

interface BotOptions {
  discord?: Discord;
  simulator?: DiscordOptions;
  database?: DatabaseSync;
  threads?: "auto" | "on" | "off";
  /** Listens to all messages in every channel. */
  isListening?: boolean;
  scripts: Step[][];
  policy?: () => Policy;
  outsideTools?(): readonly Tool[];
}

export async function startBot({
  database = new DatabaseSync(":memory:"),
  threads = "off",
  scripts,
  ...options
}: BotOptions) {
  const discord = options.discord ?? (await startDiscord(options.simulator));
  const { gateway, requests } = fakeGateway(...scripts);
  const scheduler = createScheduler({ now: () => performance.now() });
  const stores = openBotStores(database);
  const engine = createEngine({
    botName: "Palaver",
    model: "fake",
    imageModel: undefined,
    systemPrompt: "Be kind.",
    limits: LIMITS,
    policy: options.policy ?? (() => ({})),
    database,
    stores,
    gateway,
    toTools: () => [],
    ...(options.outsideTools && { outside: { toolsOf: options.outsideTools } }),
    references: { ...noLinks, prepare: async () => ({ ok: true, parts: [] }) },
    scheduler,
    adapterOf: () => adapter,
    pseudonym: (_, userId) => userId,
    metrics: createMetrics(),
    log: silent,
    retryMs: [1, 4],
  });
  const adapter = createDiscordAdapter({
    token: discord.token,
    apiUrl: discord.apiUrl,
    threads,
    commands: engine.commands,
    isListening: async () => options.isListening === true,
    namedGroups: engine.access.namedGroups,
    listModels: async () => [],
    log: silent,
    onFatal: () => {},
    now: discord.clock.now,
  });
  const idle = watchIdle(engine.queue, engine.worker, stores);
  await adapter.listen(engine.accept);
  const stop = async (graceMs = 1_000) => {
    await adapter.pause();
    await engine.queue.close(graceMs);
    scheduler.close();
    await adapter.close();
  };
  onTestFinished(() => stop(0));
  const waiting = () => engine.queue.depth().waiting;
  const { history } = engine;
  return { discord, database, adapter, requests, history, stop, idle, waiting };
}

export type Bot = Awaited<ReturnType<typeof startBot>>;

export async function startGuild(options: BotOptions) {
  const bot = await startBot(options);
  const guild = bot.discord.addGuild();
  const channel = bot.discord.addChannel(guild, "general");
  const [ada, bob] = [bot.discord.addUser("ada", guild), bot.discord.addUser("bob", guild)];
  return { ...bot, guild, channel, ada, bob };
}

/** Waits for `count` messages with text, and until the bot is idle. Resolves to the texts of the bot's messages. */
export async function finished({ discord, idle }: Bot, channel: Channel, count = 1): Promise<string[]> {
  // The promised answer to an acknowledged command is a message too, but it has no text.
  await discord.until(() => botTexts(discord, channel).filter(Boolean).length >= count);
  await idle();
  return botTexts(discord, channel);
}
