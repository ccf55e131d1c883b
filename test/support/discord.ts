import { onTestFinished } from "vitest";
import { createStillClock } from "../../lab/discord-sim/clock.ts";
import type { PermissionName } from "../../lab/discord-sim/permissions.ts";
import { createRawClient } from "../../lab/discord-sim/raw-client.ts";
import { createDiscord, type Discord, type SimulatorOptions } from "../../lab/discord-sim/simulator.ts";
import type { Allowance } from "../../lab/discord-sim/violations.ts";
import type { OnEnd } from "./listen.ts";

export interface DiscordOptions extends SimulatorOptions {
  /** The rules that this test breaks on purpose. With `"anything"`, the test checks the violations itself. */
  allow?: Allowance | "anything";
}

/** Discord for one test. When the test ends, the simulator closes, and the test fails if the bot broke a rule. */
export async function startDiscord(
  { allow = {}, ...options }: DiscordOptions = {},
  onEnd: OnEnd = onTestFinished,
): Promise<Discord> {
  const discord = await createDiscord(options);
  onEnd(async () => {
    await discord.close();
    if (allow !== "anything") discord.assertClean({ allow });
  });
  return discord;
}

/**
 * A server with a channel and a person, and calls without a library. Its clock is paused unless the test passes another
 * one. `bot` gives the bot more permissions.
 */
export async function startGuild({ bot = [], ...options }: DiscordOptions & { bot?: PermissionName[] } = {}) {
  const discord = await startDiscord({ clock: createStillClock(), ...options });
  const guild = discord.addGuild({ bot });
  const channel = discord.addChannel(guild, "general");
  const ada = discord.addUser("ada", guild);
  return { discord, guild, channel, ada, call: createRawClient(discord) };
}

export type { Discord } from "../../lab/discord-sim/simulator.ts";
