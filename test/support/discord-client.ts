import { Client, type ClientOptions, Events, GatewayIntentBits, type Message, Partials } from "discord.js";
import { onTestFinished } from "vitest";
import { type Discord, type DiscordOptions, startDiscord } from "./discord.ts";

/** A server with a user, and discord.js as its bot. */
export async function startBot(options: DiscordOptions = {}) {
  const discord = await startDiscord(options);
  const guild = discord.addGuild();
  const channel = discord.addChannel(guild, "general");
  const ada = discord.addUser("ada", guild);
  const client = await startClient(discord);
  const session = () => discord.gateway.sessions.find(({ isAttached }) => isAttached);
  return { discord, guild, channel, ada, client, session };
}

export function nextMessage(client: Client): Promise<Message> {
  return new Promise((resolve) => client.once(Events.MessageCreate, (message) => resolve(message)));
}

/** The unmodified library, connected like a bot of the simulator. It is destroyed when the test ends. */
export async function startClient(discord: Discord, options: Partial<ClientOptions> = {}): Promise<Client<true>> {
  const client = createClient(discord, options);
  const ready = new Promise<Client<true>>((resolve) => client.once(Events.ClientReady, resolve));
  await client.login(discord.token);
  return await ready;
}

export function createClient(discord: Discord, { rest, ...options }: Partial<ClientOptions> = {}): Client {
  const client = new Client({
    intents: [
      GatewayIntentBits.Guilds,
      GatewayIntentBits.GuildMessages,
      GatewayIntentBits.DirectMessages,
      GatewayIntentBits.MessageContent,
    ],
    partials: [Partials.Channel],
    allowedMentions: { parse: [] },
    ...options,
    rest: { api: discord.apiUrl, ...rest },
  });
  client.on(Events.Error, () => {});
  client.on(Events.ShardError, () => {});
  onTestFinished(() => client.destroy());
  return client;
}
