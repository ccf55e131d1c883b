import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ChatRow, MessageRow } from "../../../../adapters/local/page/wire.ts";
import { NO_RIGHT } from "../../../../src/port/right.ts";
import { type LocalPage, type LocalPageOptions, startLocalPage } from "../../../support/local-page.ts";

const signal = new AbortController().signal;
const FORGET = [{ name: "forget", description: "" }];

describe("a chat at the local page", () => {
  let page: LocalPage;
  let isRefusing = false;

  async function start(options: LocalPageOptions = {}): Promise<void> {
    const accept = async () => {
      if (isRefusing) throw new Error("the disk is full");
    };
    page = await startLocalPage({ accept, commands: FORGET, ...options });
  }

  async function change(id: string, what: "rename" | "delete", body: object = {}) {
    const response = await page.post(`/local/chats/${id}/${what}`, { nonce: randomUUID(), ...body });
    return { status: response.status, ...((await response.json()) as { error?: string }) };
  }

  const chat = async (): Promise<ChatRow | undefined> =>
    (await page.rows()).find((row): row is ChatRow => row.type === "chat" && row.id === "chat-1");
  const messages = async (): Promise<MessageRow[]> =>
    (await page.rows()).filter((row): row is MessageRow => row.type === "message");

  beforeEach(async () => {
    isRefusing = false;
    await start();
  });
  afterEach(() => page.close());

  test("a person can rename a chat", async () => {
    await page.send({ text: "hello" });
    expect(await change("chat-1", "rename", { title: " Plans for May " })).toEqual({ status: 200 });
    expect(await chat()).toMatchObject({ title: "Plans for May" });
  });

  test.for(["", "  ", "x".repeat(81), "two\nlines"])("a chat does not accept the title %j", async (title) => {
    await page.send({ text: "hello" });
    expect(await change("chat-1", "rename", { title })).toMatchObject({ status: 400 });
  });

  test("deleting a chat erases its contents and makes the bot forget the chat", async () => {
    const { id: fileId } = await page.upload("secret.txt", new TextEncoder().encode("secret"));
    await page.send({ text: "my secret", fileIds: [fileId] });
    const reply = page.events[0]?.reply;
    if (reply === undefined) throw new Error("Nothing was accepted.");
    const sink = page.adapter.sink(reply, NO_RIGHT);
    const { id } = await sink.post({ markdown: "your secret", buttons: [], streaming: false }, "n", signal);
    expect(await change("chat-1", "delete")).toEqual({ status: 200 });
    expect(page.events.at(-1)).toMatchObject({
      kind: "command",
      name: "forget",
      text: "conversation",
      conversationId: "local:chat-1",
    });
    expect(await chat()).toMatchObject({ isDeleted: true, title: "" });
    expect(await messages()).toEqual([]);
    expect((await fetch(`${page.url}/local/files/${fileId}`)).status).toBe(404);
    // The chat of an unfinished answer no longer exists.
    const draft = { markdown: "too late", buttons: [], streaming: false };
    await expect(sink.edit(id, draft, signal)).rejects.toMatchObject({ kind: "gone" });
    await expect(sink.post(draft, "n2", signal)).rejects.toMatchObject({ kind: "gone" });
  });

  test("a deleted chat stays deleted: it accepts no messages, and deleting it again succeeds", async () => {
    await page.send({ text: "hello" });
    await change("chat-1", "delete");
    await expect(page.send({ text: "hello again" })).rejects.toThrow("no longer exists");
    expect(await change("chat-1", "delete")).toEqual({ status: 200 });
    expect(page.events).toHaveLength(2);
  });

  test("a chat stays complete if the queue does not accept the command to forget the chat", async () => {
    await page.send({ text: "hello" });
    isRefusing = true;
    expect(await change("chat-1", "delete")).toMatchObject({ status: 503 });
    expect(await messages()).toMatchObject([{ text: "hello" }]);
  });

  test("the page erases a chat if the bot has no command for forgetting", async () => {
    await page.close();
    await start({ commands: [] });
    await page.send({ text: "hello" });
    await change("chat-1", "delete");
    expect(page.events).toHaveLength(1);
    expect(await messages()).toEqual([]);
  });

  test("the page refuses to rename a missing chat", async () => {
    expect(await change("chat-9", "rename", { title: "x" })).toMatchObject({ status: 404 });
  });
});
