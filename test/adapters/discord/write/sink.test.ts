import { describe, expect, test, vi } from "vitest";
import type { Api } from "../../../../adapters/discord/api/client.ts";
import { createOptionalCalls } from "../../../../adapters/discord/api/optional-calls.ts";
import { createSeenInteractionMessages } from "../../../../adapters/discord/write/interaction-writer.ts";
import { createDiscordPace } from "../../../../adapters/discord/write/pace.ts";
import { createFinalMessages } from "../../../../adapters/discord/write/private-ending.ts";
import { createSink } from "../../../../adapters/discord/write/sink.ts";
import { createTypings } from "../../../../adapters/discord/write/status.ts";
import { createStillClock } from "../../../../lab/discord-sim/clock.ts";
import type { Channel } from "../../../../lab/discord-sim/world.ts";
import { SinkError } from "../../../../src/port/errors.ts";
import type { ReplyAddress } from "../../../../src/port/events.ts";
import { NO_RIGHT } from "../../../../src/port/right.ts";
import {
  botMessages,
  botTexts,
  draft,
  NO_ROOMS,
  type StageOptions,
  signal,
  startAdapter,
  startStage,
} from "../stage.ts";

const POST = "POST /channels/:channel/messages";
const EDIT = "PATCH /channels/:channel/messages/:message";

async function startSink(options: StageOptions = {}) {
  const stage = await startStage({ listens: false, ...options });
  const question = stage.discord.people.say(stage.channel, stage.ada, "question");
  const address = to(stage.channel, {
    replyToId: `discord:${stage.channel.id}:${question.id}`,
    extra: { root: question.id },
  });
  const bodies = (route: string) =>
    stage.discord.requests
      .filter((request) => request.route === route)
      .map(({ body }) => body as Record<string, unknown>);
  return { ...stage, question, address, sink: stage.adapter.sink(address, NO_RIGHT), bodies };
}

function to({ id }: Channel, more: Partial<ReplyAddress> = {}): ReplyAddress {
  return { platform: "discord", channelId: id, ...more };
}

describe("a reply on Discord", () => {
  test("a reply refers to its question, and each further message to the previous one", async () => {
    const { discord, channel, question, sink } = await startSink();
    for (const text of ["one", "two", "three"]) await sink.post(draft(text), `n:${text}`, signal);
    const messages = botMessages(discord, channel);
    const [one, two] = messages;
    expect(messages.map(({ reference }) => reference?.messageId)).toEqual([question.id, one?.id, two?.id]);
  });

  test("a reply refers to the previous message even if an earlier attempt wrote that message", async () => {
    const { discord, channel, ada, address, question, sink } = await startSink();
    const { id } = await sink.post(draft("one"), "n:one", signal);
    const { adapter: next } = await startAdapter(discord, { listens: false });
    const later = next.sink(address, NO_RIGHT);
    await later.edit(id, draft("one and"), signal);
    await later.post(draft("two"), "n:two", signal);
    const [one, two] = botMessages(discord, channel);
    expect([one, two].map((message) => message?.reference?.messageId)).toEqual([question.id, one?.id]);
    const thread = discord.people.openThread(channel, ada, "thread");
    const there = next.sink(to(thread, { replyToId: address.replyToId ?? "" }), NO_RIGHT);
    const { id: first } = await sink.post(draft("elsewhere"), "n:elsewhere", signal);
    await there.edit(first, draft("elsewhere and"), signal);
    await there.post(draft("more"), "n:more", signal);
    expect(botMessages(discord, thread).map(({ reference }) => reference?.messageId)).toEqual([undefined]);
  });

  test("a reply in a thread refers only to its question", async () => {
    const { discord, channel, ada, adapter } = await startSink();
    const thread = discord.people.openThread(channel, ada, "thread");
    const question = discord.people.say(thread, ada, "question");
    const sink = adapter.sink(to(thread, { replyToId: `discord:${thread.id}:${question.id}` }), NO_RIGHT);
    for (const text of ["one", "two"]) await sink.post(draft(text), `n:${text}`, signal);
    expect(botMessages(discord, thread).map(({ reference }) => reference?.messageId)).toEqual([question.id, undefined]);
  });

  test("a reply is posted even if its question is gone", async () => {
    const { discord, channel, question, sink } = await startSink();
    discord.people.delete(question);
    await sink.post(draft("late"), "n", signal);
    expect(botTexts(discord, channel)).toEqual(["late"]);
  });

  test("a reply in a channel whose history the bot cannot read needs one call per message if the bot knows the channel", async () => {
    const known = await startStage();
    const { discord, channel, ada, message } = known;
    discord.overwrite(channel, discord.bot.id, { deny: ["ReadMessageHistory"] });
    discord.people.say(channel, ada, "hello", { mentionBot: true });
    const { reply } = await message(0);
    const { adapter: deaf } = await startAdapter(discord, { listens: false });
    for (const [adapter, calls] of [
      [known.adapter, 2],
      [deaf, 3],
    ] as const) {
      const before = discord.requests.length;
      const sink = adapter.sink(reply, NO_RIGHT);
      for (const part of ["one", "two"]) await sink.post(draft(`${part} of ${calls}`), `${part}${calls}`, signal);
      expect(discord.requests.slice(before).filter(({ route }) => route === POST)).toHaveLength(calls);
    }
  });

  test("a reply notifies no one, in a post or an edit", async () => {
    const { discord, guild, ada, bob, sink, bodies } = await startSink();
    const role = discord.addRole(guild, "all", [], true);
    const text = `@everyone @here <@${ada.id}> <@!${bob.id}> <@&${role.id}>`;
    const { id } = await sink.post(draft(text), "n", signal);
    await sink.edit(id, draft(`again ${text}`), signal);
    expect(discord.pings).toEqual([]);
    for (const body of [...bodies(POST), ...bodies(EDIT)]) {
      expect(body).toMatchObject({ allowed_mentions: { parse: [], replied_user: false }, flags: 4 });
    }
  });

  test("a reply reports that Discord shows less than given if an earlier post had other text or buttons", async () => {
    const { sink } = await startSink();
    const stop = { buttons: [{ action: "stop" as const, turnId: "turn", label: "Stop" }] };
    const { id, isPartial } = await sink.post(draft("Waiting …", stop), "n", signal);
    expect(isPartial).toBeUndefined();
    expect(await sink.post(draft("Waiting …", stop), "n", signal)).not.toHaveProperty("isPartial");
    for (const other of [draft("The whole answer."), draft("Waiting …"), draft("The whole answer.", stop)]) {
      expect(await sink.post(other, "n", signal)).toMatchObject({ id, isPartial: true });
    }
  });

  test("a reply is posted once if the response to the post was lost", async () => {
    const { discord, channel, sink } = await startSink();
    discord.faults.failNext(POST, { status: 502, when: "after" });
    await expect(sink.post(draft("once"), "n", signal)).rejects.toMatchObject({ kind: "unavailable" });
    await sink.post(draft("once"), "n", signal);
    expect(botTexts(discord, channel)).toEqual(["once"]);
  });

  test("a reply reports the counter in the response's headers", async () => {
    const { sink } = await startSink();
    const { id, budget } = await sink.post(draft("a"), "n", signal);
    expect(budget).toEqual({ limit: 5, remaining: 4, resetAfterMs: expect.any(Number) });
    expect((await sink.edit(id, draft("ab"), signal)).budget).toMatchObject({ remaining: 3 });
  });

  test("replies in a channel share its counter", async () => {
    const { channel, sink } = await startSink();
    expect(sink.budget.key).toBe(`discord:${channel.id}`);
  });

  test("a reply reports a rate limit and its wait, because the library does not delay calls", async () => {
    const { discord, sink } = await startSink({ simulator: { allow: { "rate-limited": 1 } } });
    const { id } = await sink.post(draft("a"), "n", signal);
    for (const text of ["ab", "abc", "abcd", "abcde"]) await sink.edit(id, draft(text), signal);
    const refused = await sink.edit(id, draft("abcdef"), signal).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(SinkError);
    expect(refused).toMatchObject({ kind: "rate-limited" });
    expect((refused as SinkError).retryAfterMs).toBeGreaterThan(0);
    expect((refused as SinkError).retryAfterMs).toBeLessThanOrEqual(5_000);
    expect(discord.requests.filter(({ route }) => route === EDIT)).toHaveLength(5);
  });

  test("a reply continues if Discord makes calls available one by one, which the library takes for a used-up window", async () => {
    const clock = createStillClock();
    const messages = { kind: "leaky" as const, limit: 2, windowMs: 2_000 };
    const { sink, discord, channel } = await startSink({ simulator: { clock, limits: { messages } } });
    const { id } = await sink.post(draft("a"), "n", signal);
    await sink.edit(id, draft("ab"), signal);
    clock.advance(1_000);
    await sink.edit(id, draft("abc"), signal);
    expect(botTexts(discord, channel)).toEqual(["abc"]);
  });

  test("the sink refuses a reply before sending it if the converted text is too long", async () => {
    const { sink, discord } = await startSink();
    await expect(sink.post(draft("数".repeat(2_001)), "n", signal)).rejects.toMatchObject({ kind: "rejected" });
    await sink.post(draft("🎉".repeat(1_000)), "n", signal);
    expect(discord.requests).toHaveLength(1);
  });
});

describe("a write that Discord refuses", () => {
  test('an edit reports "gone" for a deleted message or channel', async () => {
    const { discord, channel, sink } = await startSink();
    const { id } = await sink.post(draft("a"), "n", signal);
    const [message] = botMessages(discord, channel);
    if (message !== undefined) discord.people.delete(message);
    await expect(sink.edit(id, draft("ab"), signal)).rejects.toMatchObject({ kind: "gone" });
    await sink.remove(id, signal);
    discord.removeChannel(channel);
    await expect(sink.post(draft("b"), "m", signal)).rejects.toMatchObject({ kind: "gone" });
  });

  test("the sink does not repeat a forbidden write at once", async () => {
    const { discord, channel, sink } = await startSink({ simulator: { allow: { "invalid-request": 1 } } });
    discord.overwrite(channel, discord.bot.id, { deny: ["SendMessages"] });
    for (const nonce of ["a", "b", "c"])
      await expect(sink.post(draft("x"), nonce, signal)).rejects.toMatchObject({ kind: "forbidden" });
    expect(discord.requests).toHaveLength(1);
  });

  test("the sink still writes text after Discord refused a write for its files", async () => {
    const { discord, channel, sink } = await startSink({ simulator: { allow: { "invalid-request": 1 } } });
    discord.overwrite(channel, discord.bot.id, { deny: ["AttachFiles"] });
    const file = { name: "a.md", contentType: "text/markdown", bytes: new Uint8Array(3) };
    for (const nonce of ["a", "b"])
      await expect(sink.upload([file], undefined, nonce, signal)).rejects.toMatchObject({ kind: "forbidden" });
    await sink.post(draft("words"), "c", signal);
    expect(botTexts(discord, channel)).toEqual(["words"]);
    expect(discord.requests).toHaveLength(2);
  });

  test("the sink reopens an archived thread before it writes", async () => {
    const { discord, channel, ada, adapter } = await startSink();
    const thread = discord.people.openThread(channel, ada, "thread");
    const sink = adapter.sink(to(thread), NO_RIGHT);
    const { id } = await sink.post(draft("a"), "n", signal);
    discord.people.setThread(thread, { isArchived: true });
    await sink.edit(id, draft("ab"), signal);
    expect(botTexts(discord, thread)).toEqual(["ab"]);
  });

  test("the sink permanently gives up writing in a locked thread", async () => {
    const { discord, channel, ada, adapter } = await startSink({ simulator: { allow: "anything" } });
    const thread = discord.people.openThread(channel, ada, "thread");
    discord.people.setThread(thread, { isArchived: true, isLocked: true });
    await expect(adapter.sink(to(thread), NO_RIGHT).post(draft("a"), "n", signal)).rejects.toMatchObject({
      kind: "forbidden",
    });
  });

  test("the text continues in a new message if the old message is too old to edit", async () => {
    const clock = createStillClock();
    const { discord, channel, sink } = await startSink({ simulator: { clock, rules: { oldMessageEdits: 0 } } });
    const { id } = await sink.post(draft("old"), "n", signal);
    clock.advance(2 * 3_600_000);
    await sink.edit(id, draft("again"), signal);
    await sink.edit(id, draft("again and more"), signal);
    expect(botTexts(discord, channel)).toEqual(["old", "again and more"]);
    await sink.remove(id, signal);
    expect(botTexts(discord, channel)).toEqual(["old"]);
  });

  test("a write stops waiting when its signal aborts", async () => {
    const { discord, sink } = await startSink();
    discord.faults.failNext(POST, { status: "silence" });
    const reason = new Error("enough");
    const controller = new AbortController();
    const posting = sink.post(draft("a"), "n", controller.signal);
    await discord.until(() => discord.requests.length === 1);
    controller.abort(reason);
    await expect(posting).rejects.toBe(reason);
  });
});

describe("buttons and files", () => {
  test("the sink refuses too many or too large files before it sends any", async () => {
    const { discord, sink } = await startSink();
    const file = { name: "a", contentType: "text/plain", bytes: new Uint8Array(1) };
    const large = { ...file, bytes: new Uint8Array(10 * 1024 * 1024 + 1) };
    for (const files of [Array.from({ length: 11 }, () => file), [large]])
      await expect(sink.upload(files, undefined, "n", signal)).rejects.toMatchObject({ kind: "rejected" });
    expect(discord.requests).toEqual([]);
  });
});

describe("the typing indicator", () => {
  test("the bot shows the typing indicator once, until the first text", async () => {
    const { discord, channel, sink } = await startSink();
    await sink.progress("thinking", signal);
    await sink.progress("still thinking", signal);
    await discord.until(() => discord.typing.length === 1);
    await sink.post(draft("a"), "n", signal);
    await sink.progress("", signal);
    expect(discord.typing).toEqual([expect.objectContaining({ channelId: channel.id })]);
  });

  test("the bot does not repeat the typing indicator once there is text, even if nothing stops the indicator", async () => {
    vi.useFakeTimers();
    try {
      const routes: string[] = [];
      const call: Api["call"] = async ({ route }) => {
        routes.push(route);
        return { data: { id: "2", channel_id: "1" } };
      };
      const api: Api = { call, settled: async () => {} };
      const files = { toPostedRefs: () => [] };
      const finalMessages = createFinalMessages(api, Date.now, signal);
      const deps = {
        api,
        files,
        seenMessages: createSeenInteractionMessages(),
        acknowledgements: new Map<string, Promise<unknown>>(),
        acknowledge: async () => true,
        isAlone: true,
        rooms: NO_ROOMS,
        reactions: createOptionalCalls(api, { firstCalls: 1 }),
        finalMessages,
        pace: createDiscordPace(),
        now: Date.now,
      };
      const address = { platform: "discord", channelId: "1" };
      const sink = createSink(address, { ...deps, typingIn: createTypings(api) });
      await sink.progress("thinking", signal);
      await sink.post(draft("a"), "n", signal);
      vi.advanceTimersByTime(60_000);
      expect(routes).toEqual(["/channels/1/typing", "/channels/1/messages"]);
    } finally {
      vi.useRealTimers();
    }
  });

  test("a refused typing indicator keeps no answer from being posted", async () => {
    const { discord, channel, sink } = await startSink({ simulator: { allow: "anything" } });
    discord.overwrite(channel, discord.bot.id, { deny: ["SendMessages"] });
    await sink.progress("thinking", signal);
    await discord.until(() => discord.requests.some(({ status }) => status === 403));
    discord.overwrite(channel, discord.bot.id, { allow: ["SendMessages"] });
    await sink.post(draft("an answer"), "n", signal);
    expect(botTexts(discord, channel)).toEqual(["an answer"]);
  });
});
