import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { MessageRow } from "../../../../adapters/local/page/wire.ts";
import type { Button } from "../../../../src/port/sink.ts";
import { type LocalPage, type LocalPageOptions, startLocalPage } from "../../../support/local-page.ts";

const signal = new AbortController().signal;

describe("actions at the local page", () => {
  let page: LocalPage;
  let refuse: Error | undefined;

  async function start(options: LocalPageOptions = {}): Promise<void> {
    page = await startLocalPage({
      accept: async () => {
        if (refuse !== undefined) throw refuse;
      },
      ...options,
    });
  }

  const messages = async (): Promise<MessageRow[]> =>
    (await page.rows()).filter((row): row is MessageRow => row.type === "message").sort((a, b) => a.id - b.id);
  const change = async (id: number, what: string, body: object = {}) => {
    const response = await page.post(`/local/messages/${id}/${what}`, {
      nonce: randomUUID(),
      authorId: "ada",
      ...body,
    });
    return { status: response.status, ...((await response.json()) as { error?: string }) };
  };

  beforeEach(async () => {
    refuse = undefined;
    await start();
  });
  afterEach(() => page.close());

  test("a message sent again with its nonce is one message and one event", async () => {
    const nonce = "the-same-nonce";
    const ids = await Promise.all([1, 2, 3].map(() => page.send({ text: "hello", nonce })));
    expect(new Set(ids).size).toBe(1);
    expect(new Set(page.events.map((event) => event.key))).toEqual(new Set([`local:${nonce}`]));
    expect(await messages()).toHaveLength(1);
  });

  test("a new chat is named after its first message", async () => {
    await page.send({
      text: "\n## What is the **weather** like today in the whole of the northern hemisphere?",
      channelId: "chat-9",
    });
    const channels = (await page.rows()).filter((row) => row.type === "channel");
    expect(channels.at(-1)).toMatchObject({
      id: "chat-9",
      kind: "chat",
      title: "What is the weather like today in the whole of…",
    });
  });

  test("a chat is not named by a command but by the first thing said in it", async () => {
    const title = async () => (await page.rows()).flatMap((row) => (row.type === "channel" ? [row.title] : [])).at(-1);
    await page.send({ text: "/help" });
    expect(await title()).toBe("New chat");
    await page.send({ text: "Plans for May", isNewChat: false });
    expect(await title()).toBe("Plans for May");
    await page.send({ text: "and for June", isNewChat: false });
    expect(await title()).toBe("Plans for May");
  });

  test("a message that the queue has not got is shown to nobody, and is sent again under the same id", async () => {
    refuse = new Error("the disk is full");
    const nonce = "sent-in-vain-1";
    await expect(page.send({ text: "hello", nonce })).rejects.toThrow("could not store this. Try again in a moment.");
    expect(await messages()).toEqual([]);
    expect(page.events).toEqual([]);
    refuse = undefined;
    const id = await page.send({ text: "hello", nonce });
    expect(await messages()).toMatchObject([{ id, text: "hello" }]);
    expect(page.events).toMatchObject([{ messageId: `local:${id}` }]);
  });

  test("a message that was not accepted can be taken back, and then never arrives", async () => {
    refuse = new Error("the disk is full");
    await page.send({ text: "hello", nonce: "sent-in-vain-2" }).catch(() => undefined);
    refuse = undefined;
    expect((await page.post("/local/messages/withdraw", { nonce: "sent-in-vain-2" })).status).toBe(200);
    await page.adapter.listen(async (event) => void page.events.push(event));
    expect(page.events).toEqual([]);
    expect(await messages()).toEqual([]);
  });

  test("an accepted message cannot be taken back", async () => {
    await page.send({ text: "hello", nonce: "sent-for-good" });
    await page.post("/local/messages/withdraw", { nonce: "sent-for-good" });
    expect(await messages()).toMatchObject([{ text: "hello", isDeleted: false }]);
  });

  test("a message between people in a channel makes no event", async () => {
    await page.send({ text: "morning", channelId: "general", isNewChat: false });
    expect(page.events).toEqual([]);
    expect(await messages()).toMatchObject([{ text: "morning", channelId: "general" }]);
  });

  test("a conversation goes on in the thread that a mention opened", async () => {
    const place = { channelId: "general", isNewChat: false };
    const root = await page.send({ ...place, text: "@Palaver hello" });
    await page.send({ ...place, text: "and then?", threadId: root, authorId: "ben" });
    expect(page.events).toMatchObject([
      { conversationId: `local:general:${root}`, addressed: "bot", author: { name: "Ada" } },
      { conversationId: `local:general:${root}`, addressed: "open", author: { name: "Ben" } },
    ]);
  });

  test("a message to a place that does not exist is refused", async () => {
    const chat = await page.send({ text: "hello" });
    const reply = await page.send({ text: "@Palaver", channelId: "general", isNewChat: false });
    const inThread = await page.send({ text: "x", channelId: "general", isNewChat: false, threadId: reply });
    await expect(page.send({ channelId: "nowhere", isNewChat: false, text: "x" })).rejects.toThrow("no longer exists");
    for (const threadId of [chat, inThread, 999]) {
      await expect(page.send({ channelId: "general", threadId, text: "x" })).rejects.toThrow(
        "This thread does not exist.",
      );
    }
    await expect(page.send({ threadId: chat, text: "x" })).rejects.toThrow("This thread does not exist.");
    await expect(page.send({ authorId: "nobody", text: "x" })).rejects.toThrow("choose whom you speak as");
  });

  test("a message that begins with a command is one, and is shown as it was typed", async () => {
    await page.send({ text: "/help me out" });
    expect(page.events).toMatchObject([{ kind: "command", name: "help", text: "me out" }]);
    expect(await messages()).toMatchObject([{ text: "/help me out", isCommand: true }]);
    await expect(page.send({ text: "/hlep" })).rejects.toThrow("Did you mean /help?");
  });

  test("a request for a picture brings its files and choices", async () => {
    const { id } = await page.upload("a.png", new Uint8Array([1]));
    const options = { ratio: "16:9", count: "4", basis: "job.1" };
    await page.send({ text: "/imagine a fox --ar 16:9 --model x-1 --spoiler at night", fileIds: [id], options });
    expect(page.events).toMatchObject([
      { kind: "command", name: "imagine", attachments: [{ id, name: "a.png" }], options },
    ]);
    expect(page.events).toMatchObject([{ text: "a fox --ar 16:9 --model x-1 --spoiler at night" }]);
    expect(await messages()).toMatchObject([{ isCommand: true, options, files: [{ id }] }]);
    expect((await page.rows()).find((row) => row.type === "channel" && row.kind === "chat")).toMatchObject({
      title: "a fox at night",
    });
  });

  test("the choices for a picture go to no other command", async () => {
    await page.send({ text: "/help", options: { ratio: "16:9" } });
    expect(page.events[0]).not.toHaveProperty("options");
    expect(page.events[0]).not.toHaveProperty("attachments");
  });

  test("a message is edited only by its author, and only after the queue knows", async () => {
    const id = await page.send({ text: "first" });
    expect(await change(id, "edit", { text: "second", authorId: "ben" })).toMatchObject({ status: 403 });
    refuse = new Error("down");
    expect(await change(id, "edit", { text: "second" })).toMatchObject({ status: 503 });
    expect(await messages()).toMatchObject([{ text: "first", editedAt: null }]);
    refuse = undefined;
    expect(await change(id, "edit", { text: "second" })).toMatchObject({ status: 200 });
    expect(await messages()).toMatchObject([{ text: "second", editedAt: expect.any(Number) }]);
    expect(page.events.map((event) => event.kind)).toEqual(["message", "edited"]);
  });

  test("a message is deleted once, and the second time without complaint", async () => {
    const id = await page.send({ text: "oops" });
    expect(await change(id, "delete", { authorId: "ben" })).toMatchObject({ status: 403 });
    expect(await change(id, "delete")).toMatchObject({ status: 200 });
    expect(await change(id, "delete")).toMatchObject({ status: 200 });
    expect(page.events.map((event) => event.kind)).toEqual(["message", "deleted"]);
    expect(await messages()).toEqual([]);
    expect(await change(id, "edit", { text: "x" })).toMatchObject({ status: 404 });
  });

  test("a message between people is edited and deleted without an event", async () => {
    const id = await page.send({ text: "morning", channelId: "general", isNewChat: false });
    await change(id, "edit", { text: "good morning" });
    expect(await messages()).toMatchObject([{ text: "good morning" }]);
    await change(id, "delete");
    expect(await messages()).toEqual([]);
    expect(page.events).toEqual([]);
  });

  test("a turn without a message is stopped, and one that is over is not", async () => {
    const stop = (turnId: string) =>
      page.post("/local/stop", { nonce: randomUUID(), authorId: "ada", turnId }).then(({ status }) => status);
    await page.send({ text: "@Palaver hello", channelId: "general", isNewChat: false });
    const [event] = page.events;
    if (event === undefined) throw new Error("Nothing was accepted.");
    const sink = page.adapter.sink(event.reply);
    await sink.progress("thinking", signal, { action: "stop", turnId: "t", label: "Stop" });
    expect(await stop("other")).toBe(409);
    expect(await stop("t")).toBe(200);
    const { conversationId, reply } = event;
    const { channelId, threadId } = reply;
    expect(page.events.at(-1)).toMatchObject({
      kind: "action",
      action: "stop",
      turnId: "t",
      conversationId,
      author: { id: "ada" },
      reply: { channelId, threadId },
    });
    await sink.progress("", signal);
    expect(await stop("t")).toBe(409);
  });

  test("feedback on an answer is kept for each person, the last word only, and forgotten with them", async () => {
    await page.send({ text: "hello" });
    const [event] = page.events;
    if (event === undefined) throw new Error("Nothing was accepted.");
    const buttons: Button[] = [
      { action: "good", turnId: "t", label: "Good" },
      { action: "bad", turnId: "t", label: "Bad" },
    ];
    const { id: posted } = await page.adapter
      .sink(event.reply)
      .post({ markdown: "hi", buttons, streaming: false }, "n", signal);
    const id = Number(posted.slice("local:".length));
    const judge = (action: string, authorId: string) => change(id, "action", { action, turnId: "t", authorId });
    const judgements = async () => (await messages()).find((each) => each.id === id)?.judgements;
    await judge("good", "ada");
    await judge("bad", "ben");
    expect(await judgements()).toEqual({ ada: "good", ben: "bad" });
    await judge("good", "ben");
    expect(await judgements()).toEqual({ ada: "good", ben: "good" });
    refuse = new Error("down");
    expect(await judge("bad", "ben")).toMatchObject({ status: 503 });
    expect(await judgements()).toEqual({ ada: "good", ben: "good" });
    await page.adapter.forget?.("ben");
    expect(await judgements()).toEqual({ ada: "good" });
    // Regenerate: the next answer begins without the marks of the one before.
    await page.adapter.sink(event.reply).edit(posted, { markdown: "h", buttons: [], streaming: true }, signal);
    expect(await judgements()).toEqual({});
  });

  test("a press on a message that only somebody else sees is refused", async () => {
    await page.send({ text: "hello" });
    const [event] = page.events;
    if (event === undefined) throw new Error("Nothing was accepted.");
    const buttons: Button[] = [{ action: "retry", turnId: "t", label: "Retry" }];
    const sink = page.adapter.sink({ ...event.reply, visibleTo: "ada" });
    const id = Number((await sink.post({ markdown: "psst", buttons, streaming: false }, "n", signal)).id.slice(6));
    const press = { action: "retry", turnId: "t" };
    expect(await change(id, "action", { ...press, authorId: "ben" })).toMatchObject({ status: 403 });
    expect(page.events).toHaveLength(1);
    expect(await change(id, "action", press)).toMatchObject({ status: 200 });
  });

  test("a press on a button that is not there is refused", async () => {
    await page.send({ text: "hello" });
    const [event] = page.events;
    if (event === undefined) throw new Error("Nothing was accepted.");
    const sink = page.adapter.sink(event.reply);
    const buttons: Button[] = [{ action: "stop", turnId: "t", label: "Stop" }];
    const id = Number((await sink.post({ markdown: "…", buttons, streaming: true }, "n", signal)).id.slice(6));
    expect(await change(id, "action", { action: "retry", turnId: "t" })).toMatchObject({ status: 409 });
    expect(await change(id, "action", { action: "stop", turnId: "other" })).toMatchObject({ status: 409 });
    expect(await change(id, "action", { action: "stop", turnId: "t", authorId: "ben" })).toMatchObject({ status: 200 });
    expect(page.events.at(-1)).toMatchObject({ kind: "action", author: { id: "ben" } });
    await sink.edit(`local:${id}`, { markdown: "done", buttons: [], streaming: false }, signal);
    expect(await change(id, "action", { action: "stop", turnId: "t" })).toMatchObject({
      status: 409,
      error: "That button is no longer there; the answer has gone on.",
    });
  });
});
