import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { MessageRow } from "../../../../adapters/local/page/wire.ts";
import { NO_RIGHT } from "../../../../src/port/right.ts";
import type { Button, Draft, ReplySink } from "../../../../src/port/sink.ts";
import { type LocalPage, startLocalPage } from "../../../support/local-page.ts";

const signal = new AbortController().signal;

describe("actions at the local page", () => {
  let page: LocalPage;
  let refuse: Error | undefined;

  const messages = async (): Promise<MessageRow[]> =>
    (await page.rows()).filter((row): row is MessageRow => row.type === "message").sort((a, b) => a.id - b.id);
  const change = async (id: number, what: string, body: object = {}) => {
    const response = await page.post(`/local/messages/${id}/${what}`, { nonce: randomUUID(), ...body });
    return { status: response.status, ...((await response.json()) as { error?: string }) };
  };

  /** A chat with a message, and the sink for the answer. */
  async function startChat() {
    await page.send({ text: "hello" });
    const [event] = page.events;
    if (event === undefined) throw new Error("Nothing was accepted.");
    return { event, sink: page.adapter.sink(event.reply, NO_RIGHT) };
  }
  const post = async (sink: ReplySink, draft: Draft) =>
    Number((await sink.post(draft, "n", signal)).id.slice("local:".length));

  beforeEach(async () => {
    refuse = undefined;
    const accept = async () => {
      if (refuse !== undefined) throw refuse;
    };
    page = await startLocalPage({ accept });
  });
  afterEach(() => page.close());

  test("a message that the page sends again with the same nonce is one message and one event", async () => {
    const nonce = "the-same-nonce";
    const ids = await Promise.all([1, 2, 3].map(() => page.send({ text: "hello", nonce })));
    expect(new Set(ids).size).toBe(1);
    expect(new Set(page.events.map((event) => event.key))).toEqual(new Set([`local:${nonce}`]));
    expect(await messages()).toHaveLength(1);
  });

  test("the page names a chat after its first message, not after a command", async () => {
    const title = async () => (await page.rows()).flatMap((row) => (row.type === "chat" ? [row.title] : [])).at(-1);
    await page.send({ text: "/help" });
    expect(await title()).toBe("New chat");
    await page.send({ text: "Plans for May", isNewChat: false });
    expect(await title()).toBe("Plans for May");
    await page.send({ text: "and for June", isNewChat: false });
    expect(await title()).toBe("Plans for May");
  });

  test("the page does not show a message that the queue refused, and can send it again under the same id", async () => {
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

  test("a person can withdraw a message that the queue has not accepted, which then never arrives", async () => {
    refuse = new Error("the disk is full");
    await page.send({ text: "hello", nonce: "sent-in-vain-2" }).catch(() => undefined);
    refuse = undefined;
    expect((await page.post("/local/messages/withdraw", { nonce: "sent-in-vain-2" })).status).toBe(200);
    await page.adapter.listen(async (event) => void page.events.push(event));
    expect(page.events).toEqual([]);
    expect(await messages()).toEqual([]);
  });

  test("a person cannot withdraw an accepted message", async () => {
    await page.send({ text: "hello", nonce: "sent-for-good" });
    await page.post("/local/messages/withdraw", { nonce: "sent-for-good" });
    expect(await messages()).toMatchObject([{ text: "hello", isDeleted: false }]);
  });

  test("the page refuses a message to a missing chat", async () => {
    await expect(page.send({ chatId: "nowhere", isNewChat: false, text: "x" })).rejects.toThrow("no longer exists");
  });

  test("a message that starts with a command runs it, and is shown as typed", async () => {
    await page.send({ text: "/help me out" });
    expect(page.events).toMatchObject([{ kind: "command", name: "help", text: "me out" }]);
    expect(await messages()).toMatchObject([{ text: "/help me out", isCommand: true }]);
    await expect(page.send({ text: "/hlep" })).rejects.toThrow("Did you mean /help?");
  });

  test("a request for an image includes its files and options", async () => {
    const { id } = await page.upload("a.png", new Uint8Array([1]));
    const options = { ratio: "16:9", count: "4", basis: "job.1" };
    await page.send({ text: "/imagine a fox --ar 16:9 --model x-1 --spoiler at night", fileIds: [id], options });
    expect(page.events).toMatchObject([
      { kind: "command", name: "imagine", attachments: [{ id, name: "a.png" }], options },
    ]);
    expect(page.events).toMatchObject([{ text: "a fox --ar 16:9 --model x-1 --spoiler at night" }]);
    expect(await messages()).toMatchObject([{ isCommand: true, options, files: [{ id }] }]);
    expect((await page.rows()).find((row) => row.type === "chat")).toMatchObject({
      title: "a fox at night",
    });
  });

  test("the page passes the options for an image to no other command", async () => {
    await page.send({ text: "/help", options: { ratio: "16:9" } });
    expect(page.events[0]).not.toHaveProperty("options");
    expect(page.events[0]).not.toHaveProperty("attachments");
  });

  test("the page edits a message only after the queue accepted the edit", async () => {
    const id = await page.send({ text: "first" });
    refuse = new Error("down");
    expect(await change(id, "edit", { text: "second" })).toMatchObject({ status: 503 });
    expect(await messages()).toMatchObject([{ text: "first", editedAt: null }]);
    refuse = undefined;
    expect(await change(id, "edit", { text: "second" })).toMatchObject({ status: 200 });
    expect(await messages()).toMatchObject([{ text: "second", editedAt: expect.any(Number) }]);
    expect(page.events.map((event) => event.kind)).toEqual(["message", "edited"]);
  });

  test("the page deletes a message once, and a second deletion succeeds", async () => {
    const id = await page.send({ text: "oops" });
    expect(await change(id, "delete")).toMatchObject({ status: 200 });
    expect(await change(id, "delete")).toMatchObject({ status: 200 });
    expect(page.events.map((event) => event.kind)).toEqual(["message", "deleted"]);
    expect(await messages()).toEqual([]);
    expect(await change(id, "edit", { text: "x" })).toMatchObject({ status: 404 });
  });

  test("a person can neither edit nor delete a message by the bot", async () => {
    const { sink } = await startChat();
    const id = await post(sink, { markdown: "hi", buttons: [], streaming: false });
    for (const what of ["edit", "delete"]) expect(await change(id, what, { text: "x" })).toMatchObject({ status: 403 });
    expect(await messages()).toMatchObject([{ text: "hello" }, { text: "hi" }]);
  });

  test("a person can stop a turn without a message, but not a finished turn", async () => {
    const stop = (turnId: string) =>
      page.post("/local/stop", { nonce: randomUUID(), turnId }).then(({ status }) => status);
    const { event, sink } = await startChat();
    await sink.progress("thinking", signal, { action: "stop", turnId: "t", label: "Stop" });
    expect(await stop("other")).toBe(409);
    expect(await stop("t")).toBe(200);
    const { conversationId, reply } = event;
    expect(page.events.at(-1)).toMatchObject({
      kind: "action",
      action: "stop",
      turnId: "t",
      conversationId,
      author: { id: "you" },
      reply: { channelId: reply.channelId, isDirect: true },
    });
    await sink.progress("", signal);
    expect(await stop("t")).toBe(409);
  });

  test("the page keeps the last feedback on an answer, until another answer replaces it", async () => {
    const { sink } = await startChat();
    const buttons: Button[] = [
      { action: "good", turnId: "t", label: "Good" },
      { action: "bad", turnId: "t", label: "Bad" },
    ];
    const id = await post(sink, { markdown: "hi", buttons, streaming: false });
    const judge = (action: string) => change(id, "action", { action, turnId: "t" });
    const judgement = async () => (await messages()).find((each) => each.id === id)?.judgement;
    expect(await judgement()).toBeNull();
    await judge("good");
    expect(await judgement()).toBe("good");
    await judge("bad");
    expect(await judgement()).toBe("bad");
    refuse = new Error("down");
    expect(await judge("good")).toMatchObject({ status: 503 });
    expect(await judgement()).toBe("bad");
    // The next start does not deliver the refused press.
    refuse = undefined;
    await page.adapter.listen(async (event) => void page.events.push(event));
    expect(page.events.map((event) => event.kind)).toEqual(["message", "action", "action"]);
    // After Regenerate, the next answer starts without the previous one's ratings.
    await sink.edit(`local:${id}`, { markdown: "h", buttons: [], streaming: true }, signal);
    expect(await judgement()).toBeNull();
  });

  test("the page refuses a press of a missing button", async () => {
    const { sink } = await startChat();
    const buttons: Button[] = [{ action: "stop", turnId: "t", label: "Stop" }];
    const id = await post(sink, { markdown: "…", buttons, streaming: true });
    expect(await change(id, "action", { action: "retry", turnId: "t" })).toMatchObject({ status: 409 });
    expect(await change(id, "action", { action: "stop", turnId: "other" })).toMatchObject({ status: 409 });
    expect(await change(id, "action", { action: "stop", turnId: "t" })).toMatchObject({ status: 200 });
    expect(page.events.at(-1)).toMatchObject({ kind: "action", author: { id: "you" } });
    await sink.edit(`local:${id}`, { markdown: "done", buttons: [], streaming: false }, signal);
    expect(await change(id, "action", { action: "stop", turnId: "t" })).toMatchObject({
      status: 409,
      error: "This button no longer works: the answer has changed. Use the buttons under the newest version.",
    });
  });
});
