import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type LocalPage, startLocalPage } from "../../support/local-page.ts";

const signal = new AbortController().signal;

describe("forgetting a person at the local page", () => {
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

  test("erases what they wrote, the answers in their chats, and the files of both", async () => {
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

  test("tells open pages of it", async () => {
    await page.send({ text: "my secret" });
    const since = (await page.rows()).at(-1)?.seq ?? 0;
    await page.adapter.forget?.("ada");
    expect(await page.rows(since)).toMatchObject([{ isDeleted: true }, { type: "channel", title: "New chat" }]);
  });

  test("keeps what was not accepted yet from coming back", async () => {
    await page.close();
    page = await startLocalPage({ accept: () => Promise.reject(new Error("down")) });
    await page.send({ text: "my secret" }).catch(() => undefined);
    await page.adapter.forget?.("ada");
    await page.adapter.listen(async (event) => void page.events.push(event));
    expect(page.events).toEqual([]);
  });
});
