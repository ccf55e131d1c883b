import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Draft, OutboundFile, ReplyAddress } from "../../../src/adapter.ts";
import { type LocalPage, startLocalPage } from "../../support/local-page.ts";

const signal = new AbortController().signal;

function draft(markdown: string): Draft {
  return { markdown, buttons: [], streaming: false };
}

function file(sizeBytes: number): OutboundFile {
  return { name: "f", contentType: "", bytes: new Uint8Array(sizeBytes) };
}

describe("the sink of the local page", () => {
  let page: LocalPage;
  const address: ReplyAddress = { platform: "local", channelId: "general" };

  beforeEach(async () => {
    page = await startLocalPage();
  });
  afterEach(() => page.close());

  test("counts length in UTF-16 units, 4,000 of them", () => {
    const { limits, budget } = page.adapter.sink(address);
    expect([limits.maxLength, limits.lengthOf("a😀"), budget]).toEqual([4000, 3, "local"]);
  });

  test("refuses a channel that is not there as gone", async () => {
    const posting = page.adapter.sink({ platform: "local", channelId: "nowhere" }).post(draft("x"), "n", signal);
    await expect(posting).rejects.toMatchObject({ name: "SinkError", kind: "gone" });
  });

  test("does not write into a person's message", async () => {
    const id = await page.send({ text: "mine", channelId: "general", isNewChat: false });
    const sink = page.adapter.sink(address);
    await expect(sink.edit(`local:${id}`, draft("yours"), signal)).rejects.toMatchObject({ kind: "forbidden" });
    await expect(sink.remove(`local:${id}`, signal)).rejects.toMatchObject({ kind: "forbidden" });
  });

  test.for(["local:999", "local:", "local:x", "discord:1"])("calls the message %s gone", async (id) => {
    await expect(page.adapter.sink(address).edit(id, draft("x"), signal)).rejects.toMatchObject({ kind: "gone" });
  });

  test("refuses too many and too large files", async () => {
    const sink = page.adapter.sink(address);
    const eleven = Array.from({ length: 11 }, () => file(1));
    await expect(sink.upload(eleven, undefined, randomUUID(), signal)).rejects.toMatchObject({ kind: "rejected" });
    const large = [file(20 * 1024 * 1024 + 1)];
    await expect(sink.upload(large, undefined, randomUUID(), signal)).rejects.toMatchObject({ kind: "rejected" });
  });

  test("uploads once for a nonce, with the files in their order", async () => {
    const sink = page.adapter.sink(address);
    const files = ["b", "a"].map((name) => ({ name, contentType: "", bytes: new TextEncoder().encode(name) }));
    const { id } = await sink.upload(files, undefined, "same", signal);
    expect((await sink.upload(files, undefined, "same", signal)).id).toBe(id);
    const row = (await page.rows()).find((each) => each.type === "message");
    expect(row).toMatchObject({ authorId: null, files: [{ name: "b" }, { name: "a" }] });
  });

  test("says that a database which takes no writes is unavailable", async () => {
    const sink = page.adapter.sink(address);
    page.database.exec("PRAGMA query_only = ON");
    await expect(sink.post(draft("x"), "n", signal)).rejects.toMatchObject({ kind: "unavailable" });
    page.database.exec("PRAGMA query_only = OFF");
    expect((await sink.post(draft("x"), "n", signal)).id).toMatch(/^local:\d+$/);
  });

  test("marks what only one person is shown", async () => {
    await page.adapter.sink({ ...address, visibleTo: "ben" }).post(draft("psst"), "n", signal);
    expect((await page.rows()).at(-1)).toMatchObject({ text: "psst", visibleTo: "ben" });
  });
});
