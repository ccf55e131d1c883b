import { type Client, Events, GatewayIntentBits } from "discord.js";
import { describe, expect, test } from "vitest";
import { startDiscord } from "../../support/discord.ts";
import { createClient, nextMessage, startBot, startClient } from "../../support/discord-client.ts";

const resumed = (client: Client) =>
  new Promise<number>((resolve) => client.once(Events.ShardResume, (_, replayed) => resolve(replayed)));

describe("discord.js connected to the simulated gateway", () => {
  test("discord.js resumes after a reset connection and receives the missed events", async () => {
    const { discord, channel, ada, client, session } = await startBot();
    const first = session()?.id;
    const heard = nextMessage(client);
    const back = resumed(client);
    discord.gateway.drop();
    const said = discord.people.say(channel, ada, "while you were away");
    expect((await heard).id).toBe(said.id);
    await back;
    expect(session()?.id).toBe(first);
  });

  test("discord.js follows the request to reconnect", async () => {
    const { discord, channel, ada, client, session } = await startBot();
    const first = session()?.id;
    const back = resumed(client);
    discord.gateway.reconnect();
    await back;
    expect(session()?.id).toBe(first);
    const heard = nextMessage(client);
    discord.people.say(channel, ada, "hello");
    expect((await heard).content).toBe("hello");
  });

  test("discord.js resumes on the same connection if the session is temporarily invalid", async () => {
    const { discord, channel, ada, client, session } = await startBot();
    const first = session()?.id;
    const heard = nextMessage(client);
    discord.gateway.invalidate(true);
    discord.people.say(channel, ada, "meanwhile");
    expect((await heard).content).toBe("meanwhile");
    expect(session()?.id).toBe(first);
  });

  test("discord.js starts a new session if the old one is invalid", async () => {
    const { discord, channel, ada, client, session } = await startBot();
    const first = session()?.id;
    discord.gateway.invalidate();
    const second = await discord.until(() => session()?.id, "another session");
    expect(second).not.toBe(first);
    const heard = nextMessage(client);
    discord.people.say(channel, ada, "hello");
    expect((await heard).content).toBe("hello");
  });

  test("discord.js leaves a dead connection and resumes on another one", async () => {
    const { discord, channel, ada, client, session } = await startBot({ heartbeatIntervalMs: 200 });
    const first = session()?.id;
    const heard = nextMessage(client);
    discord.gateway.mute();
    const said = discord.people.say(channel, ada, "into the void");
    expect((await heard).id).toBe(said.id);
    expect(session()?.id).toBe(first);
  });

  test("discord.js leaves a connection on which its heartbeats get no response", async () => {
    const { discord, client, session } = await startBot({ heartbeatIntervalMs: 200 });
    const first = session()?.id;
    const back = resumed(client);
    discord.gateway.stopAcks();
    await back;
    discord.gateway.resumeAcks();
    expect(await discord.until(() => session()?.id)).toBe(first);
  });

  test("discord.js gives up when the gateway closes its connection permanently", async () => {
    const { discord, client } = await startBot();
    const ended = new Promise<number>((resolve) => client.once(Events.ShardDisconnect, ({ code }) => resolve(code)));
    discord.gateway.closeWith(4004);
    expect(await ended).toBe(4004);
    expect(discord.gateway.sessions).toEqual([]);
  });

  test("discord.js does not start with a wrong token", async () => {
    const discord = await startDiscord({ allow: { "invalid-request": 1 } });
    await expect(createClient(discord).login("wrong")).rejects.toMatchObject({ code: "TokenInvalid" });
  });

  test("discord.js does not start with an intent that the portal has switched off", async () => {
    const discord = await startDiscord({ intents: { messageContent: false } });
    await expect(createClient(discord).login(discord.token)).rejects.toThrow(/disallowed intents/i);
    const client = await startClient(discord, { intents: [GatewayIntentBits.Guilds] });
    expect(client.isReady()).toBe(true);
  });

  test("discord.js runs several shards", async () => {
    const discord = await startDiscord({ shards: 2, sessions: { maxConcurrency: 2 } });
    discord.addGuild();
    const client = await startClient(discord, { shards: "auto" });
    expect(client.ws.shards.size).toBe(2);
    expect(discord.gateway.sessions.map(({ shard }) => shard)).toEqual([
      [0, 2],
      [1, 2],
    ]);
  });

  test("discord.js loses guilds and channels that are taken away", async () => {
    const { discord, guild, channel, client } = await startBot();
    const gone = new Promise<string>((resolve) => client.once(Events.ChannelDelete, ({ id }) => resolve(id)));
    discord.removeChannel(channel);
    expect(await gone).toBe(channel.id);
    const left = new Promise<string>((resolve) => client.once(Events.GuildDelete, ({ id }) => resolve(id)));
    discord.kickBot(guild);
    expect(await left).toBe(guild.id);
  });
});
