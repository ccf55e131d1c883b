import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { Hono } from "hono";
import { describe, expect, onTestFinished, test } from "vitest";
import type { Hello, MessageRow, Row } from "../../../adapters/local/page/wire.ts";
import type { Accept } from "../../../src/port/events.ts";
import { NO_RIGHT } from "../../../src/port/right.ts";
import { type AdapterUnderTest, adapterContract } from "../../support/adapter-contract.ts";
import { type LocalPage, type LocalPageOptions, openEvents, startLocalPage } from "../../support/local-page.ts";

adapterContract("local", startUnderTest, {
  noDiscussion: "everything on the page is said to the bot",
});

async function startUnderTest(accept: Accept): Promise<AdapterUnderTest> {
  const page = await startLocalPage({ accept });
  let place = { chatId: "", nonce: "", id: 0, text: "" };
  const change = async (what: string, body: object) => {
    const response = await page.post(`/local/messages/${what}`, { nonce: randomUUID(), ...body });
    if (!response.ok) throw new Error(await response.text());
  };
  const write = async (text: string, fileIds: string[] = [], nonce: string = randomUUID()) => {
    place = { ...place, nonce, text, id: await page.send({ chatId: place.chatId, text, fileIds, nonce }) };
  };
  return {
    adapter: page.adapter,
    mention: "@you",
    async begin(text, file) {
      place.chatId = `chat-${randomUUID()}`;
      await write(text, file === undefined ? [] : [(await page.upload(file.name, file.bytes)).id]);
    },
    goOn: (text) => write(text),
    redeliver: () => write(place.text, [], place.nonce),
    editNewest: (text) => change(`${place.id}/edit`, { text }),
    deleteNewest: () => change(`${place.id}/delete`, {}),
    async press(messageId, label) {
      const button = (await botMessages(page, place.chatId))
        .find(({ id }) => `local:${id}` === messageId)
        ?.buttons.find((each) => each.label === label);
      await change(`${messageId.slice("local:".length)}/action`, { action: button?.action, turnId: button?.turnId });
    },
    async seen() {
      const messages = await botMessages(page, place.chatId);
      return messages.map(({ text, files, buttons }) => ({
        text,
        fileNames: files.map((file) => file.name),
        buttons: buttons.map((button) => button.label),
      }));
    },
    close: page.close,
  };
}

async function botMessages(page: LocalPage, chatId: string): Promise<MessageRow[]> {
  const rows = await page.rows();
  return rows
    .filter((row): row is MessageRow => row.type === "message" && row.isBot && !row.isDeleted)
    .filter((row) => row.chatId === chatId)
    .sort((a, b) => a.id - b.id);
}

describe("the local adapter in its process", () => {
  const signal = new AbortController().signal;

  async function start(options: LocalPageOptions = {}): Promise<LocalPage> {
    const page = await startLocalPage(options);
    onTestFinished(page.close);
    return page;
  }

  test("the local adapter delivers stored events at the next start if the process died before the queue accepted them", async () => {
    const folder = await mkdtemp(join(tmpdir(), "palaver-local-"));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const path = join(folder, "palaver.db");
    const reached = Promise.withResolvers<void>();
    const first = await startLocalPage({
      database: new DatabaseSync(path),
      accept: () => {
        reached.resolve();
        return new Promise(() => {});
      },
    });
    const sending = first.send({ text: "are you there?", nonce: "nonce-before-the-crash" }).catch(() => undefined);
    await reached.promise;
    // The page does not show a message that no process can answer yet.
    expect(texts(await first.rows())).toEqual([]);
    await first.close();
    await sending;

    const second = await start({ database: new DatabaseSync(path) });
    expect(second.events).toMatchObject([
      { kind: "message", text: "are you there?", key: "local:nonce-before-the-crash" },
    ]);
    expect(texts(await second.rows())).toEqual(["are you there?"]);
    // The page repeats requests that got no response.
    await second.send({ text: "are you there?", nonce: "nonce-before-the-crash" });
    expect(second.events).toHaveLength(1);
    expect(texts(await second.rows())).toEqual(["are you there?"]);
  });

  test("the local adapter writes replies even if it never listened", async () => {
    const database = new DatabaseSync(":memory:");
    const listening = await start({ database });
    await listening.send({ text: "hello" });
    const [event] = listening.events;
    const silent = await start({ database, isSilent: true });
    if (event === undefined) throw new Error("Nothing was accepted.");
    expect(silent.adapter.isConnected()).toBe(false);
    await silent.adapter
      .sink(event.reply, NO_RIGHT)
      .post({ markdown: "hi", buttons: [], streaming: false }, "n", signal);
    expect(texts(await silent.rows())).toEqual(["hello", "hi"]);
  });

  test("the local adapter refuses requests with an explanation before it listens and after a pause", async () => {
    const silent = await start({ isSilent: true });
    await expect(silent.send({ text: "hello" })).rejects.toThrow("isn't accepting messages");
    const paused = await start();
    await paused.adapter.pause();
    const response = await paused.post("/local/chats/chat-1/rename", { title: "Plans" });
    expect(response.status).toBe(503);
    expect(await response.json()).toEqual({ error: expect.stringContaining("Try again soon.") });
  });

  test("while the disk is full, the local adapter asks the person to send the message again", async () => {
    const database = new DatabaseSync(":memory:");
    const page = await start({ database });
    await page.send({ text: "hello" });
    const rename = () => page.post("/local/chats/chat-1/rename", { title: "Plans" });
    database.exec("PRAGMA query_only = ON");
    const response = await rename();
    expect([response.status, await response.json()]).toEqual([
      503,
      { error: "The server's storage is unavailable. Try again in a moment." },
    ]);
    database.exec("PRAGMA query_only = OFF");
    expect((await rename()).status).toBe(200);
  });

  test("the local adapter leaves other paths of the service alone", async () => {
    const { adapter } = await start({ password: "secret" });
    const service = new Hono().get("/before", (c) => c.text("before"));
    service.route("/", adapter.app);
    service.get("/healthz", (c) => c.text("alive"));
    expect(await (await service.request("http://elsewhere.example/healthz")).text()).toBe("alive");
    expect(await (await service.request("http://elsewhere.example/before")).text()).toBe("before");
    expect(
      (await service.request("http://elsewhere.example/", { headers: { Host: "elsewhere.example" } })).status,
    ).toBe(403);
  });

  test("the local adapter ends the streams of its pages when it closes", async () => {
    const page = await start();
    const response = await fetch(`${page.url}/local/events`);
    const ended = response.text();
    await page.adapter.close();
    expect(await ended).toContain("event: hello");
  });

  test("the local adapter says that everyone with its password sees the same chats", async () => {
    const isShared = async (options: LocalPageOptions) => {
      const { url } = await start(options);
      const headers = { Authorization: `Basic ${btoa("me:correct horse")}` };
      for await (const { data } of openEvents(`${url}/local/events`, headers))
        return (JSON.parse(data) as Hello).isShared;
      throw new Error("No event came.");
    };
    expect([await isShared({}), await isShared({ password: "correct horse" })]).toEqual([false, true]);
  });
});

function texts(rows: readonly Row[]): string[] {
  const messages = rows.filter((row): row is MessageRow => row.type === "message");
  return messages.sort((a, b) => a.id - b.id).map((row) => row.text);
}
