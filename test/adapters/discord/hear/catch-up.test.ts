import { SnowflakeUtil } from "discord.js";
import { describe, expect, test } from "vitest";
import type { Api } from "../../../../adapters/discord/api/client.ts";
import { ApiError } from "../../../../adapters/discord/api/error.ts";
import { catchUp } from "../../../../adapters/discord/listen/catch-up.ts";
import { createCatchUpGate } from "../../../../adapters/discord/listen/catch-up-gate.ts";
import { createMemoryStore } from "../../../../adapters/discord/listen/direct-channels.ts";
import type { DirectChannelStore } from "../../../../adapters/discord/options.ts";
import type { Button } from "../../../../src/port/sink.ts";
import { createStillClock } from "../../../simulators/discord/clock.ts";
import { eventually } from "../../../support/eventually.ts";
import { recordingLog, silent } from "../../../support/log.ts";
import { draft, NO_ROOMS, signal, startAdapter, startStage } from "../stage.ts";

const idAt = (timestamp: number) => String(SnowflakeUtil.generate({ timestamp, increment: 0n }));

const OPEN = "POST /channels/:channel/messages/:message/threads";
const STOP: Button = { action: "stop", turnId: "turn", label: "Stop" };
const READ = "GET /channels/:channel/messages";
const MINUTE_MS = 60_000;

/** Keeps direct conversations from one process to the next; these from the start. */
function keeping(ids: readonly string[]): DirectChannelStore {
  const store = createMemoryStore();
  void store.write(ids);
  return store;
}

describe("messages that were written while the bot was away", () => {
  test("missed messages are heard when the bot comes back, in their order", async () => {
    const { discord, channel, ada } = await startStage({ listens: false });
    const thread = discord.people.openThread(channel, ada, "thread");
    discord.people.say(channel, ada, "one", { mentionBot: true });
    discord.people.say(channel, ada, "not for the bot");
    discord.people.say(channel, ada, "two", { mentionBot: true });
    discord.people.say(thread, ada, "three", { mentionBot: true });
    const { events, event } = await startAdapter(discord);
    await event(2);
    const texts = events.map((one) => (one.kind === "message" ? one.text : ""));
    expect(texts.filter((text) => text !== "three")).toEqual(["one", "two"]);
    expect(texts).toContain("three");
    expect(events.map(({ conversationId }) => conversationId)).toContain(`discord:${thread.id}`);
  });

  test("a missed message has the key it would have had, so that it is taken once", async () => {
    const { discord, channel, ada, message } = await startStage();
    discord.people.say(channel, ada, "hello", { mentionBot: true });
    const heard = await message(0);
    const { message: again } = await startAdapter(discord);
    expect(heard).toMatchObject(await again(0));
  });

  test("a missed message has the roles of who wrote it, by which the policy decides", async () => {
    const { discord, guild, channel, ada } = await startStage({ listens: false });
    const role = discord.addRole(guild, "engineers", []);
    discord.giveRole(guild, ada, role);
    discord.people.say(channel, ada, "hello", { mentionBot: true });
    const { message } = await startAdapter(discord);
    expect((await message(0)).author.groups).toEqual([role.id]);
  });

  test("a missed message is heard also in a channel with much recent talk", async () => {
    const { discord, channel, ada } = await startStage({ listens: false });
    for (let index = 0; index < 60; index++) discord.people.say(channel, ada, `chatter ${index}`);
    discord.people.say(channel, ada, "hello", { mentionBot: true });
    const { message } = await startAdapter(discord);
    expect((await message(0)).text).toBe("hello");
  });

  test("a message missed long ago is not heard", async () => {
    const clock = createStillClock();
    const { discord, channel, ada } = await startStage({ listens: false, simulator: { clock } });
    discord.people.say(channel, ada, "old", { mentionBot: true });
    clock.advance(16 * MINUTE_MS);
    discord.people.say(channel, ada, "new", { mentionBot: true });
    const { message, events } = await startAdapter(discord);
    expect((await message(0)).text).toBe("new");
    expect(events).toHaveLength(1);
  });

  test("a missed direct message is heard however busy the servers' channels are", async () => {
    const { discord, guild, ada } = await startStage({ listens: false });
    for (let room = 0; room < 5; room++) {
      const channel = discord.addChannel(guild, `room ${room}`);
      for (let index = 0; index < 50; index++) discord.people.say(channel, ada, `chatter ${index}`);
    }
    const dm = discord.openDm(ada);
    discord.people.say(dm, ada, "hello");
    const { message } = await startAdapter(discord, { directChannels: keeping([dm.id]) });
    expect((await message(0)).text).toBe("hello");
  });

  test("missed messages are read in five hundred rooms of servers at most, in none where all is long ago, and in all direct conversations", async () => {
    const now = Date.now();
    const toRoom = (index: number, at: number) => ({ channelId: String(index), guildId: "1", lastMessageId: idAt(at) });
    const rooms = [
      ...Array.from({ length: 20 }, (_, index) => toRoom(index, now - MINUTE_MS)),
      ...Array.from({ length: 20 }, (_, index) => toRoom(100 + index, now - 60 * MINUTE_MS)),
      ...Array.from({ length: 520 }, (_, index) => toRoom(200 + index, now - MINUTE_MS)),
    ];
    const read: string[] = [];
    const api: Api = {
      async call({ route }) {
        read.push(route);
        return { data: [] };
      },
      settled: async () => {},
    };
    const deps = {
      api,
      shard: 0,
      onMessage: () => {},
      botId: () => "1",
      log: silent,
      now: () => now,
      gate: createCatchUpGate(),
    };
    const directChannels = async () => Array.from({ length: 20 }, (_, index) => `dm${index}`);
    const toRoute = (id: string) => `/channels/${id}/messages`;
    await catchUp({ ...deps, rooms: { ...NO_ROOMS, recent: () => rooms }, directChannels }, signal);
    const directs = (await directChannels()).map(toRoute);
    expect(read.filter((route) => directs.includes(route))).toEqual(directs);
    const expected = [...rooms.slice(0, 20), ...rooms.slice(40, 520)].map(({ channelId }) => toRoute(channelId));
    expect(read.filter((route) => !directs.includes(route))).toEqual(expected);
  });

  test("a room that the bot may not read is not read for missed messages, and the others are", async () => {
    const { discord, guild, channel, ada } = await startStage({ listens: false });
    const secret = discord.addChannel(guild, "secret");
    discord.people.say(channel, ada, "hello", { mentionBot: true });
    discord.people.say(secret, ada, "psst", { mentionBot: true });
    discord.overwrite(secret, discord.bot.id, { deny: ["ReadMessageHistory"] });
    const { message } = await startAdapter(discord);
    expect((await message(0)).text).toBe("hello");
    expect(discord.requests.filter(({ route }) => route === READ)).toHaveLength(1);
  });

  test("catching up does not stop at a room that cannot be read, and comes back to it", async () => {
    const { discord, guild, channel, ada } = await startStage({ listens: false });
    discord.people.say(channel, ada, "hello", { mentionBot: true });
    discord.people.say(discord.addChannel(guild, "broken"), ada, "psst", { mentionBot: true });
    discord.faults.failNext(READ, { status: 500 });
    const { message } = await startAdapter(discord);
    expect((await message(0)).text).toBe("hello");
    expect((await message(1)).text).toBe("psst");
  });

  test("missed messages are read also while other calls use up the rate limit", async () => {
    const now = Date.now();
    const rooms = Array.from({ length: 12 }, (_, index) => {
      return { channelId: String(index), guildId: "1", lastMessageId: idAt(now) };
    });
    const heard = new Set<string>();
    let calls = 0;
    const api: Api = {
      async call({ route }) {
        // One call of a second is left, the others are those of answers.
        if (calls++ % 8 !== 7) throw new ApiError("Too many calls.", { status: 429, code: 0, retryAfterMs: 1 });
        const [, channelId = ""] = /channels\/(\d+)/.exec(route) ?? [];
        return { data: [{ id: idAt(now), channel_id: channelId, author: { id: "ada" }, content: "hello" }] };
      },
      settled: async () => {},
    };
    const deps = {
      api,
      shard: 1,
      directChannels: async () => [],
      botId: () => "1",
      log: silent,
      now: () => now,
      gate: createCatchUpGate(),
    };
    const onMessage = ({ channel_id }: { channel_id: string }) => void heard.add(channel_id);
    await catchUp({ ...deps, rooms: { ...NO_ROOMS, recent: () => rooms }, onMessage }, signal);
    expect(heard.size).toBe(rooms.length);
  });

  test("a missed direct message is heard where the conversation was kept", async () => {
    const { discord, ada } = await startStage({ listens: false });
    const dm = discord.openDm(ada);
    const directChannels = keeping([]);
    const first = await startAdapter(discord, { directChannels });
    discord.people.say(dm, ada, "before");
    await first.event(0);
    await first.adapter.close();
    discord.people.say(dm, ada, "while away");
    const { message } = await startAdapter(discord, { directChannels });
    expect((await message(0)).text).toBe("before");
    expect((await message(1)).text).toBe("while away");
  });

  test.each(["to which the bot wrote first", "in which a command was given first"])(
    "a missed direct message is heard also in a conversation %s",
    async (how) => {
      const { discord, channel, ada } = await startStage({ listens: false });
      const directChannels = keeping([]);
      const { adapter } = await startAdapter(discord, { directChannels });
      const dm = discord.openDm(ada);
      if (how.includes("command")) {
        await discord.until(() => discord.commands().length > 0);
        discord.people.command(dm, ada, "ask", { prompt: "hello" });
      } else {
        await adapter.postPrivately?.({ platform: "discord", channelId: channel.id }, ada.id, "not here", "n", signal);
      }
      await eventually(directChannels.read).toEqual([dm.id]);
      await adapter.close();
      discord.people.say(dm, ada, "why?");
      const { message } = await startAdapter(discord, { directChannels });
      expect((await message(0)).text).toBe("why?");
    },
  );

  test("a list of direct channels that cannot be read is a line in the log, without words", async () => {
    const { discord, channel, ada } = await startStage({ listens: false });
    discord.people.say(channel, ada, "hello", { mentionBot: true });
    const { log, lines } = recordingLog();
    const directChannels = keeping([]);
    directChannels.read = async () => {
      throw new Error("down");
    };
    const { message } = await startAdapter(discord, { directChannels, log });
    await message(0);
    expect(lines.map(({ msg }) => String(msg)).join("\n")).toContain("list of direct conversations");
    expect(JSON.stringify(lines)).not.toContain("hello");
  });

  test("a missed question that is answered already gets no thread", async () => {
    const { discord, adapter, channel, ada, message } = await startStage({ threads: "auto" });
    const answers = ["one", "two"];
    for (const [index, text] of answers.entries()) {
      discord.people.say(channel, ada, text, { mentionBot: true });
      const { reply } = await message(index);
      const sink = adapter.sink(reply);
      const { id } = await sink.post(draft("Well", { buttons: [STOP] }), text, signal);
      // The second question comes while the first answer grows, and so gets a thread.
      if (index > 0) await sink.edit(id, draft("Well."), signal);
    }
    discord.people.say(channel, ada, "three", { mentionBot: true });
    await message(2);
    const opened = discord.requests.filter(({ route }) => route === OPEN).length;
    await adapter.close();
    const { message: again } = await startAdapter(discord, { threads: "auto" });
    expect([(await again(0)).text, (await again(1)).text, (await again(2)).text]).toEqual([...answers, "three"]);
    expect(discord.requests.filter(({ route }) => route === OPEN)).toHaveLength(opened);
  });

  test("a new event waits for the missed messages of its own channel alone", async () => {
    const { discord, guild, channel, ada } = await startStage({ listens: false });
    const other = discord.addChannel(guild, "other");
    discord.people.say(channel, ada, "missed", { mentionBot: true });
    discord.faults.slow(READ, 300, { times: 1 });
    const { event, events } = await startAdapter(discord);
    discord.people.say(channel, ada, "told", { mentionBot: true });
    discord.people.say(other, ada, "elsewhere", { mentionBot: true });
    await event(2);
    const texts = events.map((one) => (one.kind === "message" ? one.text : ""));
    expect(texts).toEqual(["elsewhere", "missed", "told"]);
  });

  test("messages missed while Discord ended the session are heard", async () => {
    const { discord, channel, ada, message } = await startStage();
    discord.people.say(channel, ada, "one", { mentionBot: true });
    await message(0);
    discord.gateway.invalidate();
    discord.people.say(channel, ada, "two", { mentionBot: true });
    expect((await message(1)).text).toBe("two");
  });
});
