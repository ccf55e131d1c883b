import { onTestFinished } from "vitest";
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

export type { Discord } from "../../lab/discord-sim/simulator.ts";
