import { onTestFinished } from "vitest";
import { createDiscordAdapter } from "../../../adapters/discord/index.ts";
import type { Adapter } from "../../../src/port/adapter.ts";
import { type Discord, startDiscord } from "../../simulators/discord/index.ts";
import type { Channel, User } from "../../simulators/discord/world.ts";
import { silent } from "../../support/log.ts";
import { type PictureWorld, startPictureWorld } from "../../support/picture-world.ts";

/** The pace is another test's matter. */
const LIMITS = { limits: { messages: { kind: "fixed" as const, limit: 100, windowMs: 5_000 } } };

/** One run of the bot. */
export interface PictureBot {
  stop(): Promise<void>;
  idle(): Promise<void>;
}

export interface PictureStage {
  discord: Discord;
  channel: Channel;
  ada: User;
  bob: User;
  world: PictureWorld;
  /** One run more, after the one before has stopped. */
  startBot(): Promise<PictureBot>;
}

/** A server with two people, and the whole bot between it and a gateway that fetches what it is shown and draws. */
export async function startPictureStage(): Promise<PictureStage> {
  const discord = await startDiscord(LIMITS);
  const guild = discord.addGuild();
  const channel = discord.addChannel(guild, "general");
  const [ada, bob] = [discord.addUser("ada", guild), discord.addUser("bob", guild)];
  const world = await startPictureWorld([new URL(discord.apiUrl).origin]);
  return { discord, channel, ada, bob, world, startBot: () => startBot(discord, world) };
}

async function startBot(discord: Discord, world: PictureWorld): Promise<PictureBot> {
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
