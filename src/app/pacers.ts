import { createDiscordBudget, createDiscordShared } from "../pacing/discord-budget.ts";
import { createEvenPacer } from "../pacing/even.ts";
import { createOneByOne } from "../pacing/one-by-one.ts";
import { createPacer, type Pacer } from "../pacing/pacer.ts";
import { createSlackPacer } from "../pacing/slack-pacer.ts";

/** The local page sets no limit of its own: each answer evenly enough to read along, all of them no more than the disk bears. */
const LOCAL_PACE = { gap: 0.01, replyGap: 0.12 };
/** Seconds between two answers to one command of Slack, which takes five of them. */
const WHISPER_GAP_SECONDS = 2;

/** The pace of each rate-limit budget, by the key that a platform's sink gives it. */
export function createPacers(): (budgetKey: string) => Pacer {
  // What interactions allow is counted apart, and not against what the bot may do in all.
  const shared = { discord: createDiscordShared(), "discord-webhook": createDiscordShared() };
  return (budgetKey) => {
    const [kind] = budgetKey.split(":");
    if (kind === "discord" || kind === "discord-webhook") {
      // discord.js keeps the calls of a channel in a queue of its own, one under way at a time.
      return createOneByOne(createPacer(createDiscordBudget(shared[kind])));
    }
    if (kind === "slack") return createSlackPacer();
    if (kind === "slack-whisper") return createEvenPacer({ gap: WHISPER_GAP_SECONDS });
    return createEvenPacer(LOCAL_PACE);
  };
}
