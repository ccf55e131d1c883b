import { describe, expect, test } from "vitest";
import { INTENTS } from "../../../lab/discord-sim/sessions.ts";
import { startGuild } from "../../support/discord.ts";
import { identify, openGateway } from "../../support/discord-gateway.ts";

const { guilds, guildMessages, directMessages, messageContent } = INTENTS;
const ALL = guilds | guildMessages | directMessages | messageContent;
const isMessage = ({ t }: { t?: string }) => t === "MESSAGE_CREATE";

async function startTalk(...[options]: Parameters<typeof startGuild>) {
  const scene = await startGuild(options);
  return { ...scene, say: (text: string) => scene.discord.people.say(scene.channel, scene.ada, text) };
}

describe("a session in the Discord simulator", () => {
  test("a session starts with hello, READY and the guilds, and lives while the gateway acknowledges heartbeats", async () => {
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

  test("a session receives only the events of its intents", async () => {
    const { discord, ada, say } = await startTalk();
    const { gateway } = await identify(discord, { intents: guilds | directMessages });
    say("in the guild");
    const dm = discord.people.say(discord.openDm(ada), ada, "directly");
    const heard = await gateway.next(isMessage);
    expect(heard.d).toMatchObject({ id: dm.id, channel_type: 1 });
    expect(heard.d).not.toHaveProperty("guild_id");
  });

  test("a session without the content intent reads only the bot's own messages, direct messages, and those addressed to the bot", async () => {
    const { discord, channel, ada, say } = await startTalk();
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

  test("a session does not receive events of channels that the bot cannot see", async () => {
    const { discord, guild, ada, say } = await startTalk();
    const hidden = discord.addChannel(guild, "hidden");
    discord.overwrite(hidden, discord.bot.id, { deny: ["ViewChannel"] });
    const { gateway } = await identify(discord, { intents: ALL });
    discord.people.say(hidden, ada, "secret");
    const said = say("public");
    expect((await gateway.next(isMessage)).d["id"]).toBe(said.id);
  });

  test("a resumed session receives everything it missed", async () => {
    const { discord, say } = await startTalk();
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

  test("a bot cannot resume a session that was closed cleanly, is too old, or comes from the future", async () => {
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

  test("several sessions on a shard each receive everything", async () => {
    const { discord, say } = await startTalk();
    const first = await identify(discord, { intents: ALL });
    const second = await identify(discord, { intents: ALL });
    const said = say("hello");
    const heard = await Promise.all([first, second].map(({ gateway }) => gateway.next(isMessage)));
    expect(heard.map(({ d }) => d["id"])).toEqual([said.id, said.id]);
    first.gateway.close(1000);
    await discord.until(() => discord.gateway.sessions.length === 1);
    expect(discord.gateway.heardBy(0)).toEqual([1, 2, 1]);
  });

  test("later messages count as undelivered if Discord itself ended the session, but not if a bot can resume the session", async () => {
    const { discord, say } = await startTalk();
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

  test("a session receives the guilds of its shard; direct messages go to shard 0", async () => {
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

describe("a connection to the simulated gateway", () => {
  test("the gateway refuses a connection with Discord's codes", async () => {
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

  test("a connection waits its turn if sessions can start only every five seconds", async () => {
    const { discord } = await startGuild({ sessions: { identifyWindowMs: 5000 }, allow: { "early-identify": 1 } });
    await identify(discord, { intents: ALL });
    const second = await openGateway(discord);
    second.send(2, { token: discord.token, intents: ALL });
    expect((await second.next(({ op }) => op === 9)).d).toBe(false);
    discord.clock.advance(5000);
    await identify(discord, { intents: ALL });
  });

  test("the gateway resets the token of a bot that has no session start left", async () => {
    const { discord } = await startGuild({ sessions: { remaining: 0 }, allow: { "gateway-abuse": 1 } });
    const gateway = await openGateway(discord);
    gateway.send(2, { token: discord.token, intents: ALL });
    expect(await gateway.closed).toBe(4004);
  });

  test("the gateway closes a connection that sends more than 120 times in a minute", async () => {
    const { discord } = await startGuild({ allow: { "gateway-abuse": 1 } });
    const gateway = await openGateway(discord);
    for (let count = 0; count < 121; count++) gateway.send(1, null);
    expect(await gateway.closed).toBe(4008);
  });
});
