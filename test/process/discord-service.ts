import type { Discord } from "../../lab/discord-sim/simulator.ts";
import { startDiscord } from "../support/discord.ts";
import type { OnEnd } from "../support/listen.ts";

export async function startChannel(onEnd: OnEnd) {
  const discord = await startDiscord({}, onEnd);
  const guild = discord.addGuild();
  return { discord, channel: discord.addChannel(guild, "general"), ada: discord.addUser("Ada", guild) };
}

export function botMessages(discord: Discord, channel: Parameters<Discord["messages"]>[0]) {
  return discord.messages(channel).filter(({ author }) => author.id === discord.bot.id);
}

/** The bot's messages, when there are this many and none has a Stop button. */
export async function answersOf(discord: Discord, channel: Parameters<Discord["messages"]>[0], count: number) {
  const isOver = () => {
    const messages = botMessages(discord, channel);
    return (
      messages.length >= count &&
      messages.every(({ states }) => !JSON.stringify(states.at(-1)?.components ?? []).includes('"Stop"'))
    );
  };
  await discord.until(isOver, "the answers to end");
  return botMessages(discord, channel);
}
