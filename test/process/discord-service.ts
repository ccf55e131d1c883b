import { startDiscord } from "../simulators/discord/index.ts";
import type { Discord } from "../simulators/discord/simulator.ts";

/** A server with a channel and a person. */
export async function startChannel() {
  const discord = await startDiscord();
  const guild = discord.addGuild();
  return { discord, channel: discord.addChannel(guild, "general"), ada: discord.addUser("Ada", guild) };
}

export function botMessages(discord: Discord, channel: Parameters<Discord["messages"]>[0]) {
  return discord.messages(channel).filter(({ author }) => author.id === discord.bot.id);
}

/** The bot's messages once there are so many and none of them can be stopped any more. */
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
