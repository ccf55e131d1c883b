import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ChannelRow, MessageRow } from "../../../../adapters/local/page/wire.ts";
import { type LocalPage, type LocalPageOptions, startLocalPage } from "../../../support/local-page.ts";

const signal = new AbortController().signal;
const FORGET = [{ name: "forget", description: "" }];

describe("a direct chat", () => {
  let page: LocalPage;
  let isRefusing = false;

  async function start(options: LocalPageOptions = {}): Promise<void> {
    const accept = async () => {
      if (isRefusing) throw new Error("the disk is full");
    };
    page = await startLocalPage({ accept, commands: FORGET, ...options });
  }

  async function change(id: string, what: "rename" | "delete", body: object = {}) {
    const response = await page.post(`/local/chats/${id}/${what}`, { nonce: randomUUID(), authorId: "ada", ...body });
    return { status: response.status, ...((await response.json()) as { error?: string }) };
  }

  const chat = async (): Promise<ChannelRow | undefined> =>
    (await page.rows()).find((row): row is ChannelRow => row.type === "channel" && row.id === "chat-1");
  const messages = async (): Promise<MessageRow[]> =>
    (await page.rows()).filter((row): row is MessageRow => row.type === "message");

  beforeEach(async () => {
    isRefusing = false;
    await start();
  });
  afterEach(() => page.close());

  test("a chat is renamed for everybody", async () => {
    await page.send({ text: "hello" });
    expect(await change("chat-1", "rename", { title: " Plans for May " })).toEqual({ status: 200 });
    expect(await chat()).toMatchObject({ title: "Plans for May" });
  });

  test.for(["", "  ", "x".repeat(81), "two\nlines"])("does not take the title %j", async (title) => {
    await page.send({ text: "hello" });
    expect(await change("chat-1", "rename", { title })).toMatchObject({ status: 400 });
  });

  test("a chat is erased with everything in it, and the bot is told to forget it", async () => {
    const { id: fileId } = await page.upload("secret.txt", new TextEncoder().encode("secret"));
    await page.send({ text: "my secret", fileIds: [fileId] });
    const reply = page.events[0]?.reply;
    if (reply === undefined) throw new Error("Nothing was accepted.");
    const sink = page.adapter.sink(reply);
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
    // An answer that was being written has no place any more.
    const draft = { markdown: "too late", buttons: [], streaming: false };
    await expect(sink.edit(id, draft, signal)).rejects.toMatchObject({ kind: "gone" });
    await expect(sink.post(draft, "n2", signal)).rejects.toMatchObject({ kind: "gone" });
  });

  test("a deleted chat stays gone: nothing is sent there, and deleting it again is no mistake", async () => {
    await page.send({ text: "hello" });
    await change("chat-1", "delete");
    await expect(page.send({ text: "hello again" })).rejects.toThrow("no longer exists");
    expect(await change("chat-1", "delete")).toEqual({ status: 200 });
    expect(page.events).toHaveLength(2);
  });

  test("a chat stays whole when the queue does not take the command to forget it", async () => {
    await page.send({ text: "hello" });
    isRefusing = true;
    expect(await change("chat-1", "delete")).toMatchObject({ status: 503 });
    expect(await messages()).toMatchObject([{ text: "hello" }]);
  });

  test("a chat is erased here where the bot has no command for forgetting", async () => {
    await page.close();
    await start({ commands: [] });
    await page.send({ text: "hello" });
    await change("chat-1", "delete");
    expect(page.events).toHaveLength(1);
    expect(await messages()).toEqual([]);
  });

  test("a channel is not renamed or deleted: it belongs to everybody", async () => {
    expect(await change("general", "rename", { title: "mine" })).toMatchObject({ status: 403 });
    expect(await change("general", "delete")).toMatchObject({ status: 403 });
    expect(await change("chat-9", "rename", { title: "x" })).toMatchObject({ status: 404 });
  });
});
