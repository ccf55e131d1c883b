import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { NO_RIGHT } from "../../../src/port/right.ts";
import { type LocalPage, startLocalPage } from "../../support/local-page.ts";

const signal = new AbortController().signal;

let page: LocalPage;

beforeEach(async () => {
  page = await startLocalPage();
});
afterEach(() => page.close());

async function answer(text: string): Promise<void> {
  const event = page.events.at(-1);
  if (event === undefined) throw new Error("Nothing was accepted.");
  await page.adapter
    .sink(event.reply, NO_RIGHT)
    .post({ markdown: text, buttons: [], streaming: false }, randomUUID(), signal);
}

async function texts(): Promise<string[]> {
  return (await page.rows()).flatMap((row) => (row.type === "message" && !row.isDeleted ? [row.text] : []));
}

describe("forgetting a person at the local page", () => {
  test("forgetting a person erases their messages, the answers in their chats, and the files of both", async () => {
    const { id } = await page.upload("secret.txt", new TextEncoder().encode("secret file"));
    await page.send({ text: "my secret", fileIds: [id] });
    await answer("about your secret");
    await page.send({ text: "secret elsewhere", chatId: "chat-2" });
    await page.adapter.forget?.({ authorId: "you" });
    const tables = ["messages", "channels", "files", "outbox"];
    const kept = tables.map((name) => JSON.stringify(page.database.prepare(`SELECT * FROM local_${name}`).all()));
    expect(kept.join("")).not.toContain("secret");
    expect((await fetch(`${page.url}/local/files/${id}`)).status).toBe(404);
  });

  test("forgetting a person erases nothing of others", async () => {
    await page.send({ text: "mine" });
    await page.adapter.forget?.({ authorId: "somebody" });
    await page.adapter.forget?.({
      authorId: "somebody",
      conversation: { id: "local:chat-1", before: Date.now() + 60_000 },
    });
    expect(await texts()).toEqual(["mine"]);
  });

  test("forgetting a person keeps the chat, which still shows the answer", async () => {
    await page.send({ text: "/forget" });
    await page.adapter.forget?.({ authorId: "you" });
    await answer("Forgotten.");
    expect((await page.rows()).at(-1)).toMatchObject({ text: "Forgotten." });
  });

  test("open pages show that a person was forgotten", async () => {
    await page.send({ text: "my secret" });
    const since = (await page.rows()).at(-1)?.seq ?? 0;
    await page.adapter.forget?.({ authorId: "you" });
    expect(await page.rows(since)).toMatchObject([{ isDeleted: true }, { type: "chat", title: "New chat" }]);
  });

  test("forgetting a person also drops their events that the queue had not accepted yet", async () => {
    await page.close();
    page = await startLocalPage({ accept: () => Promise.reject(new Error("down")) });
    await page.send({ text: "my secret" }).catch(() => undefined);
    await page.adapter.forget?.({ authorId: "you" });
    await page.adapter.listen(async (event) => void page.events.push(event));
    expect(page.events).toEqual([]);
  });
});

describe("forgetting a conversation on the local page", () => {
  const NOW = Date.now() + 60_000;

  test("forgetting a conversation erases the chat with its files and its title, and open pages show that", async () => {
    const { id } = await page.upload("secret.txt", new TextEncoder().encode("secret file"));
    await page.send({ text: "my secret", fileIds: [id] });
    await answer("your secret");
    await page.send({ text: "elsewhere", chatId: "chat-2" });
    const since = (await page.rows()).at(-1)?.seq ?? 0;
    await page.adapter.forget?.({ conversation: { id: "local:chat-1", before: NOW } });
    expect(await texts()).toEqual(["elsewhere"]);
    const changed = await page.rows(since);
    expect(changed).toMatchObject([{ isDeleted: true }, { isDeleted: true }, { type: "chat", title: "New chat" }]);
    expect((await fetch(`${page.url}/local/files/${id}`)).status).toBe(404);
    await answer("Erased.");
    expect(await texts()).toContain("Erased.");
  });

  test("forgetting a conversation keeps messages that people write later", async () => {
    await page.send({ text: "before" });
    await page.send({ text: "after" });
    page.database.exec("UPDATE local_messages SET created_at = 999 WHERE text = 'before'");
    await answer("to what was before");
    await page.adapter.forget?.({ conversation: { id: "local:chat-1", before: 1000 } });
    expect(await texts()).toEqual(["after"]);
  });
});
