import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
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
  await page.adapter.sink(event.reply).post({ markdown: text, buttons: [], streaming: false }, randomUUID(), signal);
}

describe("forgetting a person at the local page", () => {
  test("erases their messages, the answers in their chats, and the files of both", async () => {
    const { id } = await page.upload("secret.txt", new TextEncoder().encode("secret file"));
    await page.send({ text: "my secret", fileIds: [id] });
    await answer("about your secret");
    await page.send({ text: "secret in public", channelId: "random", isNewChat: false });
    await page.adapter.forget?.("ada");
    const tables = ["messages", "channels", "files", "outbox"];
    const kept = tables.map((name) => JSON.stringify(page.database.prepare(`SELECT * FROM local_${name}`).all()));
    expect(kept.join("")).not.toContain("secret");
    expect((await fetch(`${page.url}/local/files/${id}`)).status).toBe(404);
  });

  test("leaves the words of others, also in the same chat", async () => {
    await page.send({ text: "ada's" });
    await answer("to ada");
    await page.send({ text: "ben's", authorId: "ben" });
    await answer("to ben");
    await page.adapter.forget?.("ada");
    const texts = (await page.rows()).flatMap((row) => (row.type === "message" ? [row.text] : []));
    expect(texts).toEqual(["ben's", "to ben"]);
  });

  test("leaves the chat itself, so that the answer which says so has a place", async () => {
    await page.send({ text: "/forget" });
    await page.adapter.forget?.("ada");
    await answer("Forgotten.");
    expect((await page.rows()).at(-1)).toMatchObject({ text: "Forgotten." });
  });

  test("is seen on open pages", async () => {
    await page.send({ text: "my secret" });
    const since = (await page.rows()).at(-1)?.seq ?? 0;
    await page.adapter.forget?.("ada");
    expect(await page.rows(since)).toMatchObject([{ isDeleted: true }, { type: "channel", title: "New chat" }]);
  });

  test("keeps events that were not accepted yet from coming back", async () => {
    await page.close();
    page = await startLocalPage({ accept: () => Promise.reject(new Error("down")) });
    await page.send({ text: "my secret" }).catch(() => undefined);
    await page.adapter.forget?.("ada");
    await page.adapter.listen(async (event) => void page.events.push(event));
    expect(page.events).toEqual([]);
  });
});

describe("forgetting a conversation at the local page", () => {
  async function texts(): Promise<string[]> {
    return (await page.rows()).flatMap((row) => (row.type === "message" && !row.isDeleted ? [row.text] : []));
  }

  const inGeneral = { channelId: "general", isNewChat: false };
  const NOW = Date.now() + 60_000;

  test("erases a chat with its files and its title, and tells open pages", async () => {
    const { id } = await page.upload("secret.txt", new TextEncoder().encode("secret file"));
    await page.send({ text: "my secret", fileIds: [id] });
    await answer("your secret");
    await page.send({ text: "elsewhere", channelId: "chat-2" });
    const since = (await page.rows()).at(-1)?.seq ?? 0;
    await page.adapter.forgetConversation?.("local:chat-1", undefined, NOW);
    expect(await texts()).toEqual(["elsewhere"]);
    const changed = await page.rows(since);
    expect(changed).toMatchObject([{ isDeleted: true }, { isDeleted: true }, { type: "channel", title: "New chat" }]);
    expect((await fetch(`${page.url}/local/files/${id}`)).status).toBe(404);
    await answer("Erased.");
    expect(await texts()).toContain("Erased.");
  });

  test("of one person leaves the others' messages and their answers", async () => {
    await page.send({ text: "ada's" });
    await answer("to ada");
    await page.send({ text: "ben's", authorId: "ben" });
    await answer("to ben");
    await page.adapter.forgetConversation?.("local:chat-1", "ada", NOW);
    expect(await texts()).toEqual(["ben's", "to ben"]);
  });

  test("leaves what is written after the word to forget was given", async () => {
    await page.send({ text: "before" });
    await page.send({ text: "after" });
    page.database.exec("UPDATE local_messages SET created_at = 999 WHERE text = 'before'");
    await answer("to what was before");
    await page.adapter.forgetConversation?.("local:chat-1", undefined, 1000);
    expect(await texts()).toEqual(["after"]);
  });

  test("in a channel erases its thread, and of the channel itself only commands and their answers", async () => {
    const threadId = await page.send({ text: "@Palaver begin", ...inGeneral });
    await answer("in the thread");
    await page.send({ text: "and more", threadId, ...inGeneral });
    await page.send({ text: "between people", ...inGeneral });
    await page.send({ text: "/help", ...inGeneral });
    await answer("help");
    await page.adapter.forgetConversation?.("local:general", undefined, NOW);
    expect(await texts()).toEqual(["@Palaver begin", "in the thread", "and more", "between people"]);
    await page.adapter.forgetConversation?.(`local:general:${threadId}`, undefined, NOW);
    expect(await texts()).toEqual(["between people"]);
  });
});
