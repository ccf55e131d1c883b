import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { toWholeInfo } from "../../../../adapters/discord/hear/identify.ts";
import { createConnection } from "../../../../adapters/discord/hear/transport.ts";
import { shardOf } from "../../../../lab/discord-sim/sessions.ts";
import type { Channel, Guild, User } from "../../../../lab/discord-sim/world.ts";
import { recordingLog, silent } from "../../../../lab/support/log.ts";
import { PATIENCE_MS } from "../../../../lab/support/patience.ts";
import { NO_RIGHT } from "../../../../src/port/right.ts";
import { type Discord, startDiscord } from "../../../support/discord.ts";
import { eventually } from "../../../support/eventually.ts";
import { botTexts, draft, signal, startAdapter, startStage } from "../stage.ts";

const SEEN = { allow: "anything" as const };

describe("the connection to Discord", () => {
  test("the connection is open, and says so, when the adapter listens", async () => {
    const { adapter, discord } = await startStage();
    expect(adapter.isConnected()).toBe(true);
    expect(discord.gateway.sessions).toHaveLength(1);
    await adapter.close();
    expect(adapter.isConnected()).toBe(false);
  });

  test("a broken connection resumes its session, and no event is lost", async () => {
    const { discord, channel, ada, message } = await startStage();
    discord.gateway.drop();
    discord.people.say(channel, ada, "in between", { mentionBot: true });
    expect((await message(0)).text).toBe("in between");
    expect(discord.gateway.sessions).toHaveLength(1);
  });

  test("the connection is reopened when Discord asks for it", async () => {
    const { discord, channel, ada, message } = await startStage();
    discord.gateway.reconnect();
    discord.people.say(channel, ada, "after", { mentionBot: true });
    expect((await message(0)).text).toBe("after");
  });

  test("the connection requests no more intents than it needs", async () => {
    const { discord } = await startStage();
    // Guilds, their messages, direct messages, and message content.
    expect(discord.gateway.sessions.map(({ intents }) => intents)).toEqual([1 | 512 | 4_096 | 32_768]);
  });

  test("a connection without the Message Content intent logs once what to switch on, and continues without the intent", async () => {
    const { log, lines } = recordingLog();
    const { discord, channel, ada, bob, message, answer, events, heard } = await startStage({
      simulator: { intents: { messageContent: false }, ...SEEN },
      log,
    });
    expect(lines.filter(({ msg }) => String(msg).includes("Message Content"))).toHaveLength(1);
    expect(lines.map(({ msg }) => String(msg)).join()).toMatch(/Developer Portal.*Privileged Gateway Intents/);
    discord.people.say(channel, ada, "mentioned", { mentionBot: true });
    expect((await message(0)).text).toBe("mentioned");
    const replyTo = await answer(0, "answer");
    const thread = discord.people.openThread(channel, ada, "thread");
    discord.people.say(thread, bob, "cannot be read");
    discord.people.say(channel, ada, "cannot be read", { replyTo, pings: false });
    discord.people.say(discord.openDm(bob), bob, "direct");
    expect((await message(1)).text).toBe("direct");
    await heard(channel, ada);
    expect(events).toHaveLength(2);
  });

  test("a connection that loses the Message Content intent continues without it", async () => {
    const { discord, channel, ada, message, reasons } = await startStage({ simulator: SEEN });
    discord.gateway.closeWith(4014);
    await discord.until(() => discord.gateway.sessions.some(({ intents }) => (intents & 32_768) === 0));
    discord.people.say(channel, ada, "still there?", { mentionBot: true });
    expect((await message(0)).text).toBe("still there?");
    expect(reasons).toEqual([]);
  });

  test("the adapter refuses a wrong token with an explanation", async () => {
    const discord = await startDiscord(SEEN);
    const starting = startAdapter(discord, { token: `${discord.token.slice(0, -4)}xxxx` });
    await expect(starting).rejects.toThrow(/does not accept the token.*Developer Portal/);
  });

  test.each([
    [4004, /token/],
    [4010, /SHARDS/],
    [4011, /too many servers/],
    [4012, /version/],
    [4013, /intent/],
  ])("the adapter reports the reason if Discord closes the connection permanently with %i", async (code, reason) => {
    const { discord, reasons, adapter } = await startStage({ simulator: SEEN });
    discord.gateway.closeWith(code);
    await eventually(() => reasons).toEqual([expect.stringMatching(reason)]);
    expect(adapter.isConnected()).toBe(false);
  });

  test("the adapter reports a refused token once, whether Discord refused it for the connection or for a write", async () => {
    const { discord, reasons, adapter, channel } = await startStage({ simulator: SEEN });
    discord.faults.failNext("POST /channels/:channel/messages", { status: 401 });
    const sink = adapter.sink({ platform: "discord", channelId: channel.id }, NO_RIGHT);
    await expect(sink.post(draft("x"), "n", signal)).rejects.toMatchObject({ kind: "unavailable" });
    const told = [...reasons];
    discord.gateway.closeWith(4004);
    await eventually(() => adapter.isConnected()).toBe(false);
    expect(reasons).toEqual(told);
    const other = await startStage({ simulator: SEEN });
    other.discord.gateway.closeWith(4004);
    await eventually(() => other.reasons).toEqual(told);
  });

  test("the adapter retries to connect while Discord has an outage", async () => {
    const discord = await startDiscord();
    discord.faults.failNext("GET /gateway/bot", { status: 503, times: 1 });
    const { adapter } = await startAdapter(discord);
    expect(adapter.isConnected()).toBe(true);
  });
});

describe("shards", () => {
  const TWO = { shards: 2, sessions: { maxConcurrency: 2 } };

  /** A server on each of two shards, each with a channel, and a user who is a member of both. */
  function addRooms(discord: Discord): [Channel, Channel, User] {
    const guilds = new Map<number, Guild>();
    while (guilds.size < 2) {
      const guild = discord.addGuild();
      guilds.set(shardOf(guild.id, 2), guild);
    }
    const [zero, one] = [guilds.get(0), guilds.get(1)];
    if (zero === undefined || one === undefined) throw new Error("There are not two servers.");
    return [discord.addChannel(zero, "zero"), discord.addChannel(one, "one"), discord.addUser("eve", zero, one)];
  }

  test("one process runs as many shards as Discord recommends, and is ready when all of them are", async () => {
    const discord = await startDiscord(TWO);
    const [zero, one, eve] = addRooms(discord);
    const { adapter, message } = await startAdapter(discord);
    expect(discord.gateway.sessions.map(({ shard }) => shard.join("/")).toSorted()).toEqual(["0/2", "1/2"]);
    for (const channel of [zero, one]) discord.people.say(channel, eve, channel.name, { mentionBot: true });
    expect([(await message(0)).text, (await message(1)).text].toSorted()).toEqual(["one", "zero"]);
    discord.gateway.sessions.find(({ shard: [id] }) => id === 1)?.line?.close(4000, "Unknown error.");
    await expect.poll(() => adapter.isConnected(), { interval: 5, timeout: PATIENCE_MS }).toBe(false);
    await eventually(() => adapter.isConnected()).toBe(true);
  });

  test("processes that share the shards receive their own events, and only the first receives direct messages", async () => {
    const discord = await startDiscord(TWO);
    const [zero, one, eve] = addRooms(discord);
    const [first, second] = await Promise.all(
      [0, 1].map((id) => startAdapter(discord, { shards: { ids: [id], count: 2 } })),
    );
    if (first === undefined || second === undefined) throw new Error("There are not two processes.");
    for (const channel of [zero, one]) discord.people.say(channel, eve, channel.name, { mentionBot: true });
    discord.people.say(discord.openDm(eve), eve, "direct");
    expect((await second.message(0)).text).toBe("one");
    await second.heard(one, eve);
    expect([(await first.message(0)).text, (await first.message(1)).text].toSorted()).toEqual(["direct", "zero"]);
    await first.heard(zero, eve);
    expect([first.events.length, second.events.length]).toEqual([2, 1]);
  });

  test("processes that share the shards register the commands once", async () => {
    const discord = await startDiscord(TWO);
    await Promise.all([0, 1].map((id) => startAdapter(discord, { shards: { ids: [id], count: 2 } })));
    await discord.until(() => discord.commands().length > 0);
    const looked = discord.requests.filter(({ route }) => route === "GET /applications/:application/commands");
    expect(looked).toHaveLength(1);
  });
});

describe("shutdown of the adapter", () => {
  test("the adapter waits for unfinished writes when it closes", async () => {
    const { discord, adapter, channel } = await startStage({ simulator: { latencyMs: 50 } });
    const sink = adapter.sink({ platform: "discord", channelId: channel.id }, NO_RIGHT);
    const posting = sink.post(draft("the last words"), "n", signal);
    await discord.until(() => discord.requests.some(({ route }) => route.startsWith("POST /channels")));
    await adapter.close();
    expect(botTexts(discord, channel)).toEqual(["the last words"]);
    await posting;
  });

  test("after a pause, the adapter leaves commands to another process", async () => {
    const { discord, adapter, channel, ada, events } = await startStage();
    await discord.until(() => discord.commands().length > 0);
    await adapter.pause();
    expect(adapter.isConnected()).toBe(false);
    const given = discord.people.command(channel, ada, "ask", { prompt: "and this?" });
    await adapter.sink({ platform: "discord", channelId: channel.id }, NO_RIGHT).post(draft("answer"), "n", signal);
    // Waits for all calls.
    await adapter.close();
    expect(events).toEqual([]);
    expect(given.acknowledgedAs).toBeUndefined();
  });
});

/** Accepts connections and sends nothing. */
async function startSilence(): Promise<{ url: string; port: number; sockets: Socket[] }> {
  const sockets: Socket[] = [];
  const server = createServer((socket) => void sockets.push(socket.on("error", () => {})));
  server.listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return { url: `ws://127.0.0.1:${port}`, port, sockets };
}

test("a process survives if it closes a connection that then fails to open", async () => {
  const failures: unknown[] = [];
  const note = (error: unknown) => void failures.push(error);
  const others = process.listeners("uncaughtException");
  process.removeAllListeners("uncaughtException").on("uncaughtException", note);
  onTestFinished(() => {
    process.off("uncaughtException", note);
    for (const other of others) process.on("uncaughtException", other);
  });
  const { url, port, sockets } = await startSilence();
  const connection = createConnection({
    token: "MTIz.abc.def",
    gateway: { read: async () => toWholeInfo({ url }) },
    shard: { id: 0, count: 1 },
    identify: async () => {},
    content: { isAsked: true },
    attach() {},
    onFatal() {},
    log: silent,
  });
  const opening = connection.open().catch((error: Error) => error.message);
  await eventually(() => sockets.length).toBe(1);
  await connection.close();
  expect(await opening).toBe("The connection to Discord was closed.");
  sockets[0]?.resetAndDestroy();
  // The test receives data on a later connection only after the reset.
  await once(connect(port, "127.0.0.1"), "connect");
  await eventually(() => sockets.length).toBe(2);
  for (const one of sockets) one.destroy();
  expect(failures).toEqual([]);
});
