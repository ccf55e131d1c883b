import { describe, expect, test } from "vitest";
import { createStillClock } from "./clock.ts";
import { startDiscord } from "./index.ts";
import { identify, openGateway } from "./raw-gateway.ts";
import { INTENTS } from "./sessions.ts";

const { guilds, guildMessages, directMessages, messageContent } = INTENTS;
const ALL = guilds | guildMessages | directMessages | messageContent;
const isMessage = ({ t }: { t?: string }) => t === "MESSAGE_CREATE";

async function startGuild(...[options]: Parameters<typeof startDiscord>) {
  const discord = await startDiscord({ clock: createStillClock(), ...options });
  const guild = discord.addGuild();
  const channel = discord.addChannel(guild, "general");
  const ada = discord.addUser("ada", guild);
  const say = (text: string) => discord.people.say(channel, ada, text);
  return { discord, guild, channel, ada, say };
}

describe("a session", () => {
  test("begins with hello, READY and the guilds, and is alive while heartbeats are answered", async () => {
    const { discord, guild } = await startGuild({ heartbeatIntervalMs: 1234 });
    const gateway = await openGateway(discord);
    expect((await gateway.next(({ op }) => op === 10)).d["heartbeat_interval"]).toBe(1234);
    gateway.send(2, { token: discord.token, intents: ALL, properties: {} });
    const ready = await gateway.next(({ t }) => t === "READY");
    expect(ready.d["guilds"]).toEqual([{ id: guild.id, unavailable: true }]);
    expect((await gateway.next(({ t }) => t === "GUILD_CREATE")).d["id"]).toBe(guild.id);
    gateway.send(1, null);
    await gateway.next(({ op }) => op === 11);
    discord.gateway.stopAcks();
    gateway.send(1, null);
    discord.gateway.resumeAcks();
  });

  test("receives only what its intents ask for", async () => {
    const { discord, ada, say } = await startGuild();
    const { gateway } = await identify(discord, { intents: guilds | directMessages });
    say("in the guild");
    const dm = discord.people.say(discord.openDm(ada), ada, "directly");
    const heard = await gateway.next(isMessage);
    expect(heard.d).toMatchObject({ id: dm.id, channel_type: 1 });
    expect(heard.d).not.toHaveProperty("guild_id");
  });

  test("without the content intent reads only what is its own, direct, or addressed to it", async () => {
    const { discord, channel, ada, say } = await startGuild();
    const { gateway } = await identify(discord, { intents: guilds | guildMessages | directMessages });
    const said = say("overheard");
    const withheld = await gateway.next(isMessage);
    expect(withheld.d).toMatchObject({ content: "", attachments: [], member: { roles: [] } });
    discord.people.say(channel, ada, "you", { mentionBot: true, replyTo: said });
    const addressed = await gateway.next(isMessage);
    expect(addressed.d).toMatchObject({
      content: `<@${discord.bot.id}> you`,
      referenced_message: { id: said.id, content: "" },
    });
    discord.people.say(discord.openDm(ada), ada, "directly");
    expect((await gateway.next(isMessage)).d["content"]).toBe("directly");
  });

  test("does not hear channels that the bot cannot see", async () => {
    const { discord, guild, ada, say } = await startGuild();
    const hidden = discord.addChannel(guild, "hidden");
    discord.overwrite(hidden, discord.bot.id, { deny: ["ViewChannel"] });
    const { gateway } = await identify(discord, { intents: ALL });
    discord.people.say(hidden, ada, "secret");
    const said = say("public");
    expect((await gateway.next(isMessage)).d["id"]).toBe(said.id);
  });

  test("is resumed with everything it missed", async () => {
    const { discord, say } = await startGuild();
    const { gateway, ready } = await identify(discord, { intents: ALL });
    say("one");
    const seen = await gateway.next(isMessage);
    discord.gateway.drop();
    await gateway.closed;
    const missed = say("two");
    const again = await openGateway(discord);
    again.send(6, { token: discord.token, session_id: ready.d["session_id"], seq: seen.s });
    expect((await again.next(isMessage)).d["id"]).toBe(missed.id);
    await again.next(({ t }) => t === "RESUMED");
  });

  test("cannot be resumed after a clean close, nor when it is too old, nor from the future", async () => {
    const { discord } = await startGuild({ sessions: { lifetimeMs: 60_000 } });
    const resume = async (sessionId: unknown, seq = 1) => {
      const gateway = await openGateway(discord);
      gateway.send(6, { token: discord.token, session_id: sessionId, seq });
      return gateway;
    };
    const clean = await identify(discord, { intents: ALL });
    clean.gateway.close(1000);
    await discord.until(() => discord.gateway.sessions.length === 0);
    expect((await (await resume(clean.ready.d["session_id"])).next(({ op }) => op === 9)).d).toBe(false);

    const old = await identify(discord, { intents: ALL });
    old.gateway.close(4200);
    await discord.until(() => !discord.gateway.sessions[0]?.isAttached);
    expect(await (await resume(old.ready.d["session_id"], 99)).closed).toBe(4007);
    discord.clock.advance(60_001);
    expect((await (await resume(old.ready.d["session_id"])).next(({ op }) => op === 9)).d).toBe(false);
  });

  test("is one of several on a shard, and each hears everything", async () => {
    const { discord, say } = await startGuild();
    const first = await identify(discord, { intents: ALL });
    const second = await identify(discord, { intents: ALL });
    const said = say("hello");
    const heard = await Promise.all([first, second].map(({ gateway }) => gateway.next(isMessage)));
    expect(heard.map(({ d }) => d["id"])).toEqual([said.id, said.id]);
    first.gateway.close(1000);
    await discord.until(() => discord.gateway.sessions.length === 1);
    expect(discord.gateway.heardBy(0)).toEqual([1, 2, 1]);
  });

  test("leaves what is said after it untold where Discord itself ended it, not where it can be resumed", async () => {
    const { discord, say } = await startGuild();
    await identify(discord, { intents: ALL });
    discord.gateway.drop();
    say("kept for whoever resumes");
    await identify(discord, { intents: ALL });
    discord.gateway.invalidate(false);
    const untold = say("for nobody");
    await identify(discord, { intents: ALL });
    say("heard");
    expect([...discord.gateway.untoldIds]).toEqual([untold.id]);
  });

  test("hears the guilds of its shard; direct messages come to shard 0", async () => {
    const { discord, guild, ada } = await startGuild();
    const own = Number((BigInt(guild.id) >> 22n) % 2n);
    const { gateway, ready } = await identify(discord, { intents: ALL, shard: [1, 2] });
    expect(ready.d["guilds"]).toHaveLength(own === 1 ? 1 : 0);
    const zero = await identify(discord, { intents: ALL, shard: [0, 2] });
    discord.people.say(discord.openDm(ada), ada, "directly");
    await zero.gateway.next(isMessage);
    gateway.send(1, null);
    expect((await gateway.next(({ op, t }) => op === 11 || t === "MESSAGE_CREATE")).op).toBe(11);
  });
});

describe("a connection", () => {
  test("is refused with Discord's codes", async () => {
    const { discord } = await startGuild({ intents: { messageContent: false } });
    const code = async (op: number, d: unknown) => {
      const gateway = await openGateway(discord);
      gateway.send(op, d);
      return await gateway.closed;
    };
    const { token } = discord;
    expect(await code(2, { token: "wrong", intents: 0 })).toBe(4004);
    expect(await code(2, { token, intents: ALL })).toBe(4014);
    expect(await code(2, { token, intents: 1 << 30 })).toBe(4013);
    expect(await code(2, { token, intents: 0, shard: [2, 2] })).toBe(4010);
    expect(await code(3, {})).toBe(4003);
  });

  test("waits its turn when sessions may start only every five seconds", async () => {
    const { discord } = await startGuild({ sessions: { identifyWindowMs: 5000 }, allow: { "early-identify": 1 } });
    await identify(discord, { intents: ALL });
    const second = await openGateway(discord);
    second.send(2, { token: discord.token, intents: ALL });
    expect((await second.next(({ op }) => op === 9)).d).toBe(false);
    discord.clock.advance(5000);
    await identify(discord, { intents: ALL });
  });

  test("costs the token when no session is left", async () => {
    const { discord } = await startGuild({ sessions: { remaining: 0 }, allow: { "gateway-abuse": 1 } });
    const gateway = await openGateway(discord);
    gateway.send(2, { token: discord.token, intents: ALL });
    expect(await gateway.closed).toBe(4004);
  });

  test("ends when it sends more than 120 times in a minute", async () => {
    const { discord } = await startGuild({ allow: { "gateway-abuse": 1 } });
    const gateway = await openGateway(discord);
    for (let count = 0; count < 121; count++) gateway.send(1, null);
    expect(await gateway.closed).toBe(4008);
  });
});
