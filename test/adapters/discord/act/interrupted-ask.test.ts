import { describe, expect, test } from "vitest";
import { shown } from "../../../../lab/discord-sim/world.ts";
import { SinkError } from "../../../../src/port/errors.ts";
import { NO_RIGHT } from "../../../../src/port/right.ts";
import type { Button } from "../../../../src/port/sink.ts";
import { botMessages, botTexts, draft, type StageOptions, signal, startAdapter } from "../stage.ts";
import { STOP, startAsk } from "./ask.ts";

describe("an answer to /ask that a crash interrupted", () => {
  async function cut(buttons: Button[], isPrivate = false) {
    const stage = await startAsk({ isPrivate });
    await stage.sink.post(draft("Beca", { buttons }), "turn:0", signal);
    const { adapter } = await startAdapter(stage.discord, { listens: false });
    return { ...stage, next: adapter.sink(stage.reply, NO_RIGHT) };
  }

  test.each([
    [[STOP], false],
    [[], false],
    [[STOP], true],
    [[], true],
  ])(
    "a process finds an interrupted answer to /ask and does not post it twice (buttons %j, private %j)",
    async (buttons, isPrivate) => {
      const { discord, channel, next } = await cut(buttons, isPrivate);
      const { id } = await next.post(draft("Beca", { buttons }), "turn:0", signal);
      await next.edit(id, draft("Because."), signal);
      expect(botTexts(discord, channel)).toEqual(["Because."]);
    },
  );

  test("a process continues an interrupted answer to /ask with further messages, and finds those after the next crash", async () => {
    const { discord, channel, reply, next } = await cut([STOP]);
    const { id } = await next.post(draft("second part", { buttons: [STOP] }), "turn:1", signal);
    const { adapter } = await startAdapter(discord, { listens: false });
    expect((await adapter.sink(reply, NO_RIGHT).post(draft("second", { buttons: [STOP] }), "turn:1", signal)).id).toBe(
      id,
    );
    expect(botMessages(discord, channel)).toHaveLength(2);
  });

  test("the process that received /ask finds an answer that another process started", async () => {
    const { discord, channel, asked, reply, sink } = await startAsk();
    await discord.until(() => asked.acknowledgedAs === 5);
    const { adapter: other } = await startAdapter(discord, { listens: false });
    const picture = { name: "cat.png", contentType: "image/png", bytes: Uint8Array.of(1, 2, 3) };
    const first = other.sink(reply, NO_RIGHT);
    await first.post(draft("Drawing ...", { buttons: [STOP] }), "status", signal);
    const { id } = await first.upload([picture], undefined, "picture", signal);
    expect((await sink.upload([picture], undefined, "picture", signal)).id).toBe(id);
    expect(botMessages(discord, channel).map((one) => shown(one).attachments.length)).toEqual([0, 1]);
  });

  test("a process does not confuse an interrupted answer to /ask with another answer with the same text", async () => {
    const { discord, adapter, channel, ada, next } = await cut([STOP]);
    const place = { platform: "discord", channelId: channel.id };
    await adapter.sink(place, NO_RIGHT).post(draft("Yes."), "another", signal);
    discord.people.say(channel, ada, "in between");
    await next.post(draft("Yes."), "turn:1", signal);
    expect(botTexts(discord, channel)).toEqual(["Beca", "Yes.", "Yes."]);
  });

  test("a process fills the deferred response of an interrupted /ask if that has no text yet", async () => {
    const { discord, channel, reply } = await startAsk();
    const { adapter } = await startAdapter(discord, { listens: false });
    await adapter.sink(reply, NO_RIGHT).post(draft("Because."), "turn:0", signal);
    expect(botTexts(discord, channel)).toEqual(["Because."]);
  });

  test("the bot writes an answer to /ask once if Discord's response to a post was lost", async () => {
    const { discord, channel, sink } = await startAsk();
    await sink.post(draft("one"), "turn:0", signal);
    discord.faults.failNext("POST /webhooks/:webhook/:token", { status: 502, when: "after" });
    await expect(sink.post(draft("two"), "turn:1", signal)).rejects.toBeInstanceOf(SinkError);
    await sink.post(draft("two"), "turn:1", signal);
    expect(botTexts(discord, channel)).toEqual(["one", "two"]);
  });
});

describe("a private answer to /ask", () => {
  const FOLLOW_UP = "POST /webhooks/:webhook/:token";
  const file = { name: "a.md", contentType: "text/markdown", bytes: new Uint8Array(3) };

  async function startPrivate(options: StageOptions = {}) {
    const stage = await startAsk({ isPrivate: true, ...options });
    await stage.sink.post(draft("one"), "turn:0", signal);
    return stage;
  }

  test.each(["status", "reset"])(
    "the bot writes a private answer to /ask once if Discord's response to a post was lost (%s)",
    async (how) => {
      const { discord, channel, adapter, reply, sink } = await startPrivate();
      const fault = { status: how === "reset" ? ("reset" as const) : 502, when: "after" as const };
      discord.faults.failNext(FOLLOW_UP, fault);
      await expect(sink.post(draft("two"), "turn:1", signal)).rejects.toMatchObject({ kind: "unavailable" });
      await sink.post(draft("two"), "turn:1", signal);
      discord.faults.failNext(FOLLOW_UP, fault);
      await expect(sink.upload([file], undefined, "turn:2", signal)).rejects.toMatchObject({ kind: "unavailable" });
      await sink.upload([file], undefined, "turn:2", signal);
      discord.faults.failNext(FOLLOW_UP, fault);
      await expect(sink.post(draft("four"), "turn:3", signal)).rejects.toMatchObject({ kind: "unavailable" });
      await discord.until(() => botMessages(discord, channel).length === 4);
      // The retried turn writes through a different sink.
      await adapter.sink(reply, NO_RIGHT).post(draft("four"), "turn:3", signal);
      expect(botTexts(discord, channel)).toEqual(["one", "two", "", "four"]);
    },
  );

  test("the bot writes a private answer to /ask if the post itself was lost", async () => {
    const { discord, channel, sink } = await startPrivate();
    discord.faults.failNext(FOLLOW_UP, { status: 502 });
    await expect(sink.post(draft("two"), "turn:1", signal)).rejects.toMatchObject({ kind: "unavailable" });
    await sink.post(draft("two"), "turn:1", signal);
    expect(botTexts(discord, channel)).toEqual(["one", "two"]);
  });

  test("a private answer to /ask can contain the same text twice", async () => {
    const { discord, channel, sink } = await startPrivate({ simulator: { allow: { "double-post": 1 } } });
    discord.faults.failNext(FOLLOW_UP, { status: 502, when: "after" });
    await sink.post(draft("two"), "turn:1", signal).catch(() => {});
    await sink.post(draft("two"), "turn:1", signal);
    await sink.post(draft("two"), "turn:2", signal);
    expect(botTexts(discord, channel)).toEqual(["one", "two", "two"]);
  });

  test("any process can read the files of a private answer to /ask by their links", async () => {
    const { discord, sink } = await startPrivate();
    const [ref] = (await sink.upload([file], undefined, "turn:1", signal)).attachments ?? [];
    if (ref === undefined) throw new Error("There is no file.");
    const { adapter } = await startAdapter(discord, { listens: false });
    const chunks = await Array.fromAsync(await adapter.openAttachment(ref, signal));
    expect(Buffer.concat(chunks)).toHaveLength(3);
  });
});
