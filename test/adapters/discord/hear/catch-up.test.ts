import { SnowflakeUtil } from "discord.js";
import { describe, expect, test } from "vitest";
import type { Api } from "../../../../adapters/discord/api/client.ts";
import { ApiError } from "../../../../adapters/discord/api/error.ts";
import type { Rooms } from "../../../../adapters/discord/api/rooms.ts";
import { catchUp, createCatchUpGate } from "../../../../adapters/discord/hear/catch-up.ts";
import { createMemoryStore } from "../../../../adapters/discord/hear/direct-channels.ts";
import type { Message } from "../../../../adapters/discord/hear/wording.ts";
import type { DirectChannelStore } from "../../../../adapters/discord/options.ts";
import { createStillClock } from "../../../../lab/discord-sim/clock.ts";
import { recordingLog, silent } from "../../../../lab/support/log.ts";
import type { Button } from "../../../../src/port/sink.ts";
import { eventually } from "../../../support/eventually.ts";
import { NO_ROOMS, signal, startAdapter, startStage } from "../stage.ts";

const idAt = (timestamp: number) => String(SnowflakeUtil.generate({ timestamp, increment: 0n }));

const OPEN = "POST /channels/:channel/messages/:message/threads";
const STOP: Button = { action: "stop", turnId: "turn", label: "Stop" };
const READ = "GET /channels/:channel/messages";
const MINUTE_MS = 60_000;

/** A store that keeps direct conversations for the next process, and already contains these ids. */
function keeping(ids: readonly string[]): DirectChannelStore {
  const store = createMemoryStore();
  void store.write(ids);
  return store;
}

/** Catches up on these rooms and direct conversations with this API, and passes the messages on. */
function catchUpIn(
  rooms: ReturnType<Rooms["recent"]>,
  call: Api["call"],
  { directs = [], onMessage = () => {} }: { directs?: string[]; onMessage?: (message: Message) => void } = {},
): Promise<void> {
  const deps = {
    api: { call, settled: async () => {} },
    rooms: { ...NO_ROOMS, recent: () => rooms },
    hasDirects: directs.length > 0,
    directChannels: async () => directs,
    onMessage,
    botId: () => "1",
    log: silent,
    now: Date.now,
    gate: createCatchUpGate(),
  };
  return catchUp(deps, signal);
}

describe("messages written while the bot was away", () => {
  test("the bot receives missed messages in order when it comes back", async () => {
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

  test("a missed message has its usual event key, so the bot handles it once", async () => {
    const { discord, channel, ada, message } = await startStage();
    discord.people.say(channel, ada, "hello", { mentionBot: true });
    const heard = await message(0);
    const { message: again } = await startAdapter(discord);
    expect(heard).toMatchObject(await again(0));
  });

  test("a missed message includes its author's roles, which the access policy needs", async () => {
    const { discord, guild, channel, ada } = await startStage({ listens: false });
    const role = discord.addRole(guild, "engineers", []);
    discord.giveRole(guild, ada, role);
    discord.people.say(channel, ada, "hello", { mentionBot: true });
    const { message } = await startAdapter(discord);
    expect((await message(0)).author.groups).toEqual([role.id]);
  });

  test("the bot receives a missed message even from a busy channel", async () => {
    const { discord, channel, ada } = await startStage({ listens: false });
    for (let index = 0; index < 60; index++) discord.people.say(channel, ada, `chatter ${index}`);
    discord.people.say(channel, ada, "hello", { mentionBot: true });
    const { message } = await startAdapter(discord);
    expect((await message(0)).text).toBe("hello");
  });

  test("the bot drops a message that it missed long ago", async () => {
    const clock = createStillClock();
    const { discord, channel, ada } = await startStage({ listens: false, simulator: { clock } });
    discord.people.say(channel, ada, "old", { mentionBot: true });
    clock.advance(16 * MINUTE_MS);
    discord.people.say(channel, ada, "new", { mentionBot: true });
    const { message, events } = await startAdapter(discord);
    expect((await message(0)).text).toBe("new");
    expect(events).toHaveLength(1);
  });

  test("catching up reads all direct conversations, and at most 500 server channels with recent messages", async () => {
    const now = Date.now();
    const toRoom = (index: number, at: number) => ({ channelId: String(index), guildId: "1", lastMessageId: idAt(at) });
    const rooms = [
      ...Array.from({ length: 20 }, (_, index) => toRoom(index, now - MINUTE_MS)),
      ...Array.from({ length: 20 }, (_, index) => toRoom(100 + index, now - 60 * MINUTE_MS)),
      ...Array.from({ length: 520 }, (_, index) => toRoom(200 + index, now - MINUTE_MS)),
    ];
    const directs = Array.from({ length: 20 }, (_, index) => `dm${index}`);
    const read: string[] = [];
    const call: Api["call"] = async ({ route }) => {
      read.push(route.split("/")[2] ?? "");
      return { data: [] };
    };
    await catchUpIn(rooms, call, { directs });
    expect(read.filter((id) => id.startsWith("dm"))).toEqual(directs);
    const expected = [...rooms.slice(0, 20), ...rooms.slice(40, 520)].map(({ channelId }) => channelId);
    expect(read.filter((id) => !id.startsWith("dm"))).toEqual(expected);
  });

  test("catching up skips a channel that the bot cannot read, and reads the others", async () => {
    const { discord, guild, channel, ada } = await startStage({ listens: false });
    const secret = discord.addChannel(guild, "secret");
    discord.people.say(channel, ada, "hello", { mentionBot: true });
    discord.people.say(secret, ada, "psst", { mentionBot: true });
    discord.overwrite(secret, discord.bot.id, { deny: ["ReadMessageHistory"] });
    const { message } = await startAdapter(discord);
    expect((await message(0)).text).toBe("hello");
    expect(discord.requests.filter(({ route }) => route === READ)).toHaveLength(1);
  });

  test("catching up continues if the bot fails to read a channel, and retries that channel", async () => {
    const { discord, guild, channel, ada } = await startStage({ listens: false });
    discord.people.say(channel, ada, "hello", { mentionBot: true });
    discord.people.say(discord.addChannel(guild, "broken"), ada, "psst", { mentionBot: true });
    discord.faults.failNext(READ, { status: 500 });
    const { message } = await startAdapter(discord);
    expect((await message(0)).text).toBe("hello");
    expect((await message(1)).text).toBe("psst");
  });

  test("catching up succeeds even while other calls use up the rate limit", async () => {
    const now = Date.now();
    const rooms = Array.from({ length: 12 }, (_, index) => {
      return { channelId: String(index), guildId: "1", lastMessageId: idAt(now) };
    });
    const heard = new Set<string>();
    let calls = 0;
    const call: Api["call"] = async ({ route }) => {
      // Only one call per second is left. The others are reserved for answers.
      if (calls++ % 8 !== 7) throw new ApiError("Too many calls.", { status: 429, code: 0, retryAfterMs: 1 });
      const channelId = route.split("/")[2];
      return { data: [{ id: idAt(now), channel_id: channelId, author: { id: "ada" }, content: "hello" }] };
    };
    await catchUpIn(rooms, call, { onMessage: ({ channel_id }) => void heard.add(channel_id) });
    expect(heard.size).toBe(rooms.length);
  });

  test("the bot receives a missed direct message if it had stored the conversation", async () => {
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

  test("the next process reads a direct message that starts a conversation while a process shuts down", async () => {
    const { discord, ada } = await startStage({ listens: false });
    const directChannels = keeping([]);
    const first = await startAdapter(discord, { directChannels });
    await first.adapter.pause();
    const dm = discord.openDm(ada);
    discord.people.say(dm, ada, "anyone there?");
    await eventually(directChannels.read).toEqual([dm.id]);
    await first.adapter.close();
    discord.gateway.invalidate(false);
    const { message } = await startAdapter(discord, { directChannels });
    expect((await message(0)).text).toBe("anyone there?");
    expect(first.events).toEqual([]);
  });

  test.each(["that the bot started", "that started with a command"])(
    "the bot also receives a missed direct message in a conversation %s",
    async (how) => {
      const { discord, channel, ada } = await startStage({ listens: false });
      const directChannels = keeping([]);
      const { adapter } = await startAdapter(discord, { directChannels });
      const dm = discord.openDm(ada);
      if (how.includes("command")) {
        await discord.until(() => discord.commands().length > 0);
        discord.people.command(dm, ada, "ask", { prompt: "hello" });
      } else {
        await adapter.notifyPrivately?.(
          { platform: "discord", channelId: channel.id },
          ada.id,
          "not here",
          "n",
          signal,
        );
      }
      await eventually(directChannels.read).toEqual([dm.id]);
      await adapter.close();
      discord.people.say(dm, ada, "why?");
      const { message } = await startAdapter(discord, { directChannels });
      expect((await message(0)).text).toBe("why?");
    },
  );

  test("the bot logs a failure to read the list of direct channels without users' text", async () => {
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

  test("the bot opens no thread for a missed question that already has an answer", async () => {
    const { discord, adapter, channel, ada, message, answer } = await startStage({ threads: "auto" });
    const answers = ["one", "two"];
    // The second question comes while the first answer is growing, so it gets a thread.
    for (const [index, text] of answers.entries()) {
      discord.people.say(channel, ada, text, { mentionBot: true });
      await answer(index, "Well", index === 0 ? { buttons: [STOP] } : {});
    }
    discord.people.say(channel, ada, "three", { mentionBot: true });
    await message(2);
    const opened = discord.requests.filter(({ route }) => route === OPEN).length;
    await adapter.close();
    const { message: again } = await startAdapter(discord, { threads: "auto" });
    expect([(await again(0)).text, (await again(1)).text, (await again(2)).text]).toEqual([...answers, "three"]);
    expect(discord.requests.filter(({ route }) => route === OPEN)).toHaveLength(opened);
  });

  test("a new event waits only for the missed messages of its channel", async () => {
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

  test("the bot receives a message that was written between the end of its session and the start of the next one", async () => {
    const { discord, channel, ada, message } = await startStage();
    discord.people.say(channel, ada, "one", { mentionBot: true });
    await message(0);
    discord.gateway.invalidate();
    discord.people.say(channel, ada, "two", { mentionBot: true });
    expect((await message(1)).text).toBe("two");
  });
});

function setUp(longestMs?: number) {
  const done: string[] = [];
  const over = Promise.withResolvers<void>();
  const gate = createCatchUpGate(longestMs);
  const take = (id: string, word: string, isDirect = false) =>
    gate.take({ id, isDirect }, () => {
      done.push(word);
      if (word === "last") over.resolve();
    });
  return { gate, take, done, over: over.promise };
}

describe("events that wait for missed messages", () => {
  test("events run in order once their channel was read, or at once if it is not read", () => {
    const { gate, take, done } = setUp();
    gate.begin();
    take("a", "one");
    take("b", "two");
    take("dm", "three", true);
    expect(done).toEqual([]);
    gate.expect(false, ["a"]);
    expect(done).toEqual(["two"]);
    take("a", "four");
    gate.release("a");
    take("a", "five");
    expect(done).toEqual(["two", "one", "four", "five"]);
    gate.expect(true, []);
    expect(done).toEqual(["two", "one", "four", "five", "three"]);
  });

  test("events run after the maximum wait even if their channel was not read", async () => {
    const { gate, take, done, over } = setUp(10);
    gate.begin();
    take("a", "last");
    await over;
    expect(done).toEqual(["last"]);
  });
});
