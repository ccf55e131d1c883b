import { type Client, Events, GatewayIntentBits } from "discord.js";
import { describe, expect, test } from "vitest";
import { createClient, nextMessage, startBot, startClient } from "./client.ts";
import { startDiscord } from "./index.ts";

const resumed = (client: Client) =>
  new Promise<number>((resolve) => client.once(Events.ShardResume, (_, replayed) => resolve(replayed)));

describe("discord.js on the gateway", () => {
  test("resumes after a cut line and hears what it missed", async () => {
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

  test("follows the request to reconnect", async () => {
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

  test("resumes on the same line where the session is invalid for now", async () => {
    const { discord, channel, ada, client, session } = await startBot();
    const first = session()?.id;
    const heard = nextMessage(client);
    discord.gateway.invalidate(true);
    discord.people.say(channel, ada, "meanwhile");
    expect((await heard).content).toBe("meanwhile");
    expect(session()?.id).toBe(first);
  });

  test("begins a new session when the old one is invalid", async () => {
    const { discord, channel, ada, client, session } = await startBot();
    const first = session()?.id;
    discord.gateway.invalidate();
    const second = await discord.until(() => session()?.id, "another session");
    expect(second).not.toBe(first);
    const heard = nextMessage(client);
    discord.people.say(channel, ada, "hello");
    expect((await heard).content).toBe("hello");
  });

  test("leaves a line that is dead, and resumes on another", async () => {
    const { discord, channel, ada, client, session } = await startBot({ heartbeatIntervalMs: 200 });
    const first = session()?.id;
    const heard = nextMessage(client);
    discord.gateway.mute();
    const said = discord.people.say(channel, ada, "into the void");
    expect((await heard).id).toBe(said.id);
    expect(session()?.id).toBe(first);
  });

  test("leaves a line on which heartbeats are not answered", async () => {
    const { discord, client, session } = await startBot({ heartbeatIntervalMs: 200 });
    const first = session()?.id;
    const back = resumed(client);
    discord.gateway.stopAcks();
    await back;
    discord.gateway.resumeAcks();
    expect(await discord.until(() => session()?.id)).toBe(first);
  });

  test("gives up when it is closed for good", async () => {
    const { discord, client } = await startBot();
    const ended = new Promise<number>((resolve) => client.once(Events.ShardDisconnect, ({ code }) => resolve(code)));
    discord.gateway.closeWith(4004);
    expect(await ended).toBe(4004);
    expect(discord.gateway.sessions).toEqual([]);
  });

  test("does not start with a wrong token", async () => {
    const discord = await startDiscord({ allow: { "invalid-request": 1 } });
    await expect(createClient(discord).login("wrong")).rejects.toMatchObject({ code: "TokenInvalid" });
  });

  test("does not start with an intent that is off in the portal", async () => {
    const discord = await startDiscord({ intents: { messageContent: false } });
    await expect(createClient(discord).login(discord.token)).rejects.toThrow(/disallowed intents/i);
    const client = await startClient(discord, { intents: [GatewayIntentBits.Guilds] });
    expect(client.isReady()).toBe(true);
  });

  test("runs several shards", async () => {
    const discord = await startDiscord({ shards: 2, sessions: { maxConcurrency: 2 } });
    discord.addGuild();
    const client = await startClient(discord, { shards: "auto" });
    expect(client.ws.shards.size).toBe(2);
    expect(discord.gateway.sessions.map(({ shard }) => shard)).toEqual([
      [0, 2],
      [1, 2],
    ]);
  });

  test("loses guilds and channels that are taken from it", async () => {
    const { discord, guild, channel, client } = await startBot();
    const gone = new Promise<string>((resolve) => client.once(Events.ChannelDelete, ({ id }) => resolve(id)));
    discord.removeChannel(channel);
    expect(await gone).toBe(channel.id);
    const left = new Promise<string>((resolve) => client.once(Events.GuildDelete, ({ id }) => resolve(id)));
    discord.kickBot(guild);
    expect(await left).toBe(guild.id);
  });
});
