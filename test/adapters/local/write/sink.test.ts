import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ReplyAddress } from "../../../../src/port/events.ts";
import type { Draft, OutboundFile } from "../../../../src/port/sink.ts";
import { type LocalPage, startLocalPage } from "../../../support/local-page.ts";

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
    expect([limits.maxLength, limits.lengthOf("a😀"), budget.key]).toEqual([4000, 3, "local"]);
  });

  test("refuses a channel that is not there as gone", async () => {
    const posting = page.adapter.sink({ platform: "local", channelId: "nowhere" }).post(draft("x"), "n", signal);
    await expect(posting).rejects.toMatchObject({ name: "SinkError", kind: "gone" });
  });

  test("keeps the tools that were used with the answer, and says in one line what they took", async () => {
    const sink = page.adapter.sink(address);
    const steps = [{ id: "1", title: "looking", state: "done" as const, begunAt: 0, endedAt: 4_200 }];
    const running = [{ id: "1", title: "looking", state: "running" as const, begunAt: 0, runningMs: 3_000 }];
    const { id } = await sink.post({ ...draft("It is"), streaming: true, steps: running }, randomUUID(), signal);
    const shown = async () => (await page.rows()).findLast((row) => row.type === "message" && `local:${row.id}` === id);
    expect(await shown()).toMatchObject({ steps: [{ title: "looking, 3 s" }], stepsLine: "looking, 3 s…" });
    await sink.edit(id, { ...draft("It is noon."), steps }, signal);
    expect(await shown()).toMatchObject({
      text: "It is noon.",
      steps: [{ title: "looking, 4.2 s", state: "done" }],
      stepsLine: "Used 1 tool, 4.2 s",
    });
  });

  test("does not say that a tool is at work once its answer has ended", async () => {
    const sink = page.adapter.sink(address);
    const steps = [{ id: "1", title: "looking", state: "running" as const, begunAt: 0, runningMs: 3_000 }];
    await sink.post({ ...draft("It"), steps }, randomUUID(), signal);
    expect((await page.rows()).find((row) => row.type === "message")).toMatchObject({
      stepsLine: "Used 1 tool, 0.1 s",
    });
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

  test("leaves no file behind whose message could not be written, and names the reason", async () => {
    const gone = page.adapter.sink({ platform: "local", channelId: "nowhere" });
    const files = () => page.database.prepare("SELECT count(*) AS n FROM local_files").get()?.["n"];
    await expect(gone.upload([file(5)], undefined, randomUUID(), signal)).rejects.toMatchObject({ kind: "gone" });
    expect(files()).toBe(0);
    page.database.exec("CREATE TRIGGER full BEFORE DELETE ON local_files BEGIN SELECT RAISE(ABORT, 'disk'); END");
    await expect(gone.upload([file(5)], undefined, randomUUID(), signal)).rejects.toMatchObject({ kind: "gone" });
  });

  test("uploads once for a nonce, with the files in their order", async () => {
    const sink = page.adapter.sink(address);
    const files = ["b", "a"].map((name) => ({ name, contentType: "", bytes: new TextEncoder().encode(name) }));
    const { id } = await sink.upload(files, undefined, "same", signal);
    expect((await sink.upload(files, undefined, "same", signal)).id).toBe(id);
    const row = (await page.rows()).find((each) => each.type === "message");
    expect(row).toMatchObject({ authorId: null, files: [{ name: "b" }, { name: "a" }] });
  });

  test("names the files it stored, as they are opened again, also when it is asked twice", async () => {
    const sink = page.adapter.sink(address);
    const bytes = new TextEncoder().encode("a picture");
    const upload = () => sink.upload([{ name: "a.png", contentType: "image/png", bytes }], undefined, "same", signal);
    const { attachments } = await upload();
    expect(attachments).toMatchObject([{ platform: "local", name: "a.png", sizeBytes: bytes.length }]);
    expect((await upload()).attachments).toEqual(attachments);
    const [ref] = attachments ?? [];
    if (ref === undefined) throw new Error("The file is missing.");
    const chunks = await Array.fromAsync(await page.adapter.openAttachment(ref, signal));
    expect(Buffer.concat(chunks).equals(bytes)).toBe(true);
  });

  test("shows a picture with its caption, its buttons and its words for those who cannot see it", async () => {
    const buttons = [{ action: "again" as const, turnId: "job.1", label: "Again" }];
    const picture = { ...file(3), altText: "a fox in the snow", isSpoiler: true };
    const caption = { markdown: "a fox", buttons, streaming: false };
    await page.adapter.sink(address).upload([picture], caption, "n", signal);
    expect((await page.rows()).at(-1)).toMatchObject({
      text: "a fox",
      buttons,
      files: [{ altText: "a fox in the snow", isSpoiler: true }],
    });
  });

  test("moves an ended status behind the messages that it brought, and moves nothing else", async () => {
    const sink = page.adapter.sink(address);
    const buttons = [{ action: "stop" as const, turnId: "job.0", label: "Stop" }];
    const status = await sink.post({ markdown: "Drawing", buttons, streaming: false }, "status", signal);
    const answer = await sink.post({ markdown: "an ans", buttons, streaming: true }, "answer", signal);
    const { id: picture } = await sink.upload([file(1)], undefined, "picture", signal);
    await sink.edit(status.id, { markdown: "Still drawing", buttons, streaming: false }, signal);
    const behind = async () => (await page.rows()).flatMap((row) => (row.type === "message" ? [row.movedBehind] : []));
    expect(await behind()).toEqual([null, null, null]);
    await sink.edit(answer.id, draft("an answer"), signal);
    await sink.edit(status.id, draft("One was not drawn"), signal);
    expect((await page.rows()).at(-1)).toMatchObject({
      text: "One was not drawn",
      movedBehind: Number(picture.slice("local:".length)),
    });
    expect((await behind()).filter((each) => each !== null)).toHaveLength(1);
  });

  test("supports judging an answer", () => {
    expect(page.adapter.sink(address).supportsSecondThoughts).toBe(true);
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
