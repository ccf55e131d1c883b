import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ReplyAddress } from "../../../../src/port/events.ts";
import { NO_RIGHT } from "../../../../src/port/right.ts";
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
  const address: ReplyAddress = { platform: "local", channelId: "chat-1" };

  beforeEach(async () => {
    page = await startLocalPage();
    await page.send({ text: "hello" });
  });
  afterEach(() => page.close());

  test("the sink measures length in UTF-16 units, and allows 4,000 of them", () => {
    const { limits, budget } = page.adapter.sink(address, NO_RIGHT);
    expect([limits.maxLength, limits.lengthOf("a😀"), budget.key]).toEqual([4000, 3, "local"]);
  });

  test("the sink reports a missing chat as gone", async () => {
    const posting = page.adapter
      .sink({ platform: "local", channelId: "nowhere" }, NO_RIGHT)
      .post(draft("x"), "n", signal);
    await expect(posting).rejects.toMatchObject({ name: "SinkError", kind: "gone" });
  });

  test("the sink stores an answer's tool calls with the answer, and summarises them in one line", async () => {
    const sink = page.adapter.sink(address, NO_RIGHT);
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

  test("the sink shows no tool as running once its answer has ended", async () => {
    const sink = page.adapter.sink(address, NO_RIGHT);
    const steps = [{ id: "1", title: "looking", state: "running" as const, begunAt: 0, runningMs: 3_000 }];
    await sink.post({ ...draft("It"), steps }, randomUUID(), signal);
    expect((await page.rows()).at(-1)).toMatchObject({
      stepsLine: "Used 1 tool, 0.1 s",
    });
  });

  test("the sink does not write into a person's message", async () => {
    const id = await page.send({ text: "mine" });
    const sink = page.adapter.sink(address, NO_RIGHT);
    await expect(sink.edit(`local:${id}`, draft("yours"), signal)).rejects.toMatchObject({ kind: "forbidden" });
    await expect(sink.remove(`local:${id}`, signal)).rejects.toMatchObject({ kind: "forbidden" });
  });

  test.for(["local:999", "local:", "local:x", "discord:1"])("the sink reports the message %s as gone", async (id) => {
    await expect(page.adapter.sink(address, NO_RIGHT).edit(id, draft("x"), signal)).rejects.toMatchObject({
      kind: "gone",
    });
  });

  test("the sink refuses a message with too many or too large files", async () => {
    const sink = page.adapter.sink(address, NO_RIGHT);
    const eleven = Array.from({ length: 11 }, () => file(1));
    await expect(sink.upload(eleven, undefined, randomUUID(), signal)).rejects.toMatchObject({ kind: "rejected" });
    const large = [file(20 * 1024 * 1024 + 1)];
    await expect(sink.upload(large, undefined, randomUUID(), signal)).rejects.toMatchObject({ kind: "rejected" });
  });

  test("the sink keeps no file whose message could not be written, and names the reason", async () => {
    const gone = page.adapter.sink({ platform: "local", channelId: "nowhere" }, NO_RIGHT);
    const files = () => page.database.prepare("SELECT count(*) AS n FROM local_files").get()?.["n"];
    await expect(gone.upload([file(5)], undefined, randomUUID(), signal)).rejects.toMatchObject({ kind: "gone" });
    expect(files()).toBe(0);
    page.database.exec("CREATE TRIGGER full BEFORE DELETE ON local_files BEGIN SELECT RAISE(ABORT, 'disk'); END");
    await expect(gone.upload([file(5)], undefined, randomUUID(), signal)).rejects.toMatchObject({ kind: "gone" });
  });

  test("an upload returns attachments that can be opened, and the same ones when it is repeated", async () => {
    const sink = page.adapter.sink(address, NO_RIGHT);
    const bytes = new TextEncoder().encode("a picture");
    const files = ["b.png", "a.png"].map((name) => ({ name, contentType: "image/png", bytes }));
    const upload = () => sink.upload(files, undefined, "same", signal);
    const { attachments } = await upload();
    expect(attachments).toMatchObject([
      { platform: "local", name: "b.png", sizeBytes: bytes.length },
      { platform: "local", name: "a.png" },
    ]);
    expect((await upload()).attachments).toEqual(attachments);
    const [ref] = attachments ?? [];
    if (ref === undefined) throw new Error("The file is missing.");
    const chunks = await Array.fromAsync(await page.adapter.openAttachment(ref, signal));
    expect(Buffer.concat(chunks).equals(bytes)).toBe(true);
  });

  test("the sink shows an image with its caption, its buttons and its description for people who cannot see it", async () => {
    const buttons = [{ action: "again" as const, turnId: "job.1", label: "Again" }];
    const picture = { ...file(3), altText: "a fox in the snow", isSpoiler: true };
    const caption = { markdown: "a fox", buttons, streaming: false };
    await page.adapter.sink(address, NO_RIGHT).upload([picture], caption, "n", signal);
    expect((await page.rows()).at(-1)).toMatchObject({
      text: "a fox",
      buttons,
      files: [{ altText: "a fox in the snow", isSpoiler: true }],
    });
  });

  test("the sink moves an ended status below its messages, and moves nothing else", async () => {
    const sink = page.adapter.sink(address, NO_RIGHT);
    const buttons = [{ action: "stop" as const, turnId: "job.0", label: "Stop" }];
    const status = await sink.post({ markdown: "Drawing", buttons, streaming: false }, "status", signal);
    const answer = await sink.post({ markdown: "an ans", buttons, streaming: true }, "answer", signal);
    const { id: picture } = await sink.upload([file(1)], undefined, "picture", signal);
    await sink.edit(status.id, { markdown: "Still drawing", buttons, streaming: false }, signal);
    const behind = async () => (await page.rows()).flatMap((row) => (row.type === "message" ? [row.movedBehind] : []));
    expect(await behind()).toEqual([null, null, null, null]);
    await sink.edit(answer.id, draft("an answer"), signal);
    await sink.edit(status.id, draft("One was not drawn"), signal);
    expect((await page.rows()).at(-1)).toMatchObject({
      text: "One was not drawn",
      movedBehind: Number(picture.slice("local:".length)),
    });
    expect((await behind()).filter((each) => each !== null)).toHaveLength(1);
  });

  test("the sink offers ratings of an answer", () => {
    expect(page.adapter.sink(address, NO_RIGHT).traits?.secondThoughts).toBe(true);
  });

  test("a post fails as unavailable while the database is read-only", async () => {
    const sink = page.adapter.sink(address, NO_RIGHT);
    page.database.exec("PRAGMA query_only = ON");
    await expect(sink.post(draft("x"), "n", signal)).rejects.toMatchObject({ kind: "unavailable" });
    page.database.exec("PRAGMA query_only = OFF");
    expect((await sink.post(draft("x"), "n", signal)).id).toMatch(/^local:\d+$/);
  });

  test("the sink stores a note about an answer separately from the answer", async () => {
    await page.adapter.sink({ ...address, visibleTo: "you" }, NO_RIGHT).post(draft("psst"), "n", signal);
    expect((await page.rows()).at(-1)).toMatchObject({ text: "psst", isAside: true });
    await page.adapter.sink(address, NO_RIGHT).post(draft("an answer"), "m", signal);
    expect((await page.rows()).at(-1)).toMatchObject({ text: "an answer", isAside: false });
  });
});
