import { onTestFinished } from "vitest";
import { createDiscord, type Discord, type SimulatorOptions } from "./simulator.ts";
import type { Allowance } from "./violations.ts";

export interface DiscordOptions extends SimulatorOptions {
  /** The rules this test breaks on purpose; `"anything"` leaves the judgement to the test. */
  allow?: Allowance | "anything";
}

/** Discord for one test: when it ends, the simulator closes, and what the bot did against the rules fails the test. */
export async function startDiscord({ allow = {}, ...options }: DiscordOptions = {}): Promise<Discord> {
  const discord = await createDiscord(options);
  onTestFinished(async () => {
    await discord.close();
    if (allow !== "anything") discord.assertClean({ allow });
  });
  return discord;
}

export type { Discord } from "./simulator.ts";
