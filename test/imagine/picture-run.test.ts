import { DatabaseSync } from "node:sqlite";
import { setImmediate as soon } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { fakePlatform } from "../../lab/support/fake-platform.ts";
import { recordingLog, silent } from "../../lab/support/log.ts";
import { noFiles, noLinks, pictureTurn } from "../../lab/support/picture-turn.ts";
import { createQuickScheduler } from "../../lab/support/quick-scheduler.ts";
import type { Gateway } from "../../src/gateway/client.ts";
import { createHistory } from "../../src/history/history.ts";
import { createPictureRuns } from "../../src/imagine/picture-run.ts";
import { createMetrics } from "../../src/metrics/metrics.ts";
import { NO_RIGHT } from "../../src/port/right.ts";
import { createQuota } from "../../src/quota/quota.ts";
import { createStores } from "../../src/store/keyv.ts";
import type { PicturePart, PictureTurn } from "../../src/turn/record.ts";
import { createTurnRecords } from "../../src/turn/records.ts";
import { createRunningPictures } from "../../src/turn/running.ts";
import { createUsage } from "../../src/usage/usage.ts";

const { signal } = new AbortController();
const PNG = Buffer.from("iVBORw0KGgo=", "base64");
const IMAGE = { bytes: PNG, mimeType: "image/png", text: "", usage: { promptTokens: 7, completionTokens: 258 } };
const file = (id: string) => ({ platform: "test", id, name: `${id}.png`, sizeBytes: 1 });
const shown = (id: string): PicturePart => ({ state: "done", messageId: `test:${id}`, attachment: file(id), text: "" });
const deleted: PicturePart = { state: "deleted" };

function start(generateImage: Gateway["generateImage"] = async () => IMAGE) {
  const platform = fakePlatform();
  const database = new DatabaseSync(":memory:");
  const { log, lines } = recordingLog();
  const { open, inTurn, counters } = createStores({ redisUrl: undefined, database, log: silent }, NO_RIGHT);
  const common = { open, inTurn, ttlMs: 60_000, log: silent };
  const records = createTurnRecords({ ...common, files: noFiles });
  const history = createHistory({ ...common, now: Date.now });
  const metrics = createMetrics();
  const usage = createUsage({ counters, log: silent, now: Date.now });
  const pseudonym = (_: string, userId: string) => userId;
  const quota = createQuota({
    right: NO_RIGHT,
    policy: () => ({}),
    counters,
    usage,
    pseudonym,
    now: Date.now,
    log: silent,
  });
  const runs = createPictureRuns({
    right: NO_RIGHT,
    gateway: { generateImage },
    references: { ...noLinks, prepare: async () => ({ ok: true, parts: [] }) },
    records,
    files: noFiles,
    history,
    scheduler: createQuickScheduler(1),
    adapterOf: () => platform.adapter,
    sinkOf: () => platform.sink,
    onProgress: () => {},
    metrics,
    quota,
    log,
  });
  const run = (turn: PictureTurn, { isGivenUp = false, cut = signal } = {}) => {
    const running = createRunningPictures(turn.id);
    running.open(turn);
    if (isGivenUp) running.giveUp();
    return runs.run(running, turn, cut, false);
  };
  const read = async () => (await history.read("test:a", { maxEntries: 5 })).entries;
  return { ...platform, records, history, read, runs, run, metrics, usage, database, lines };
}

describe("an image turn", () => {
  test("an image turn stores and counts its results", async () => {
    const { run, records, history, metrics, usage, calls } = start();
    expect(await run(pictureTurn())).toBe(true);
    expect(calls).toEqual(["post", "upload", "remove"]);
    expect(await records.loadPicture("job")).toMatchObject({
      phase: "final",
      posted: [],
      ends: ["complete"],
      parts: [{ state: "done", tokens: 265 }],
    });
    expect(await history.find("test:reply2")).toEqual({ conversationId: "test:a", entryId: "job" });
    const { body } = await metrics.render();
    expect(body).toContain('palaver_pictures_total{outcome="drawn"} 1');
    expect(body).toContain('palaver_tokens_total{direction="completion",estimated="false"} 258');
    expect(await usage.readMonth({ platform: "test", authorId: "ada" })).toMatchObject({
      pictures: 1,
      promptTokens: 7,
      completionTokens: 258,
    });
  });

  test("an image turn makes no request if it cannot write to the channel", async () => {
    const { run, records, setTrouble, calls } = start();
    setTrouble(() => ({ kind: "forbidden" }));
    expect(await run(pictureTurn())).toBe(false);
    expect(calls).toEqual(["post"]);
    expect(await records.loadPicture("job")).toMatchObject({ phase: "final", parts: [{ state: "pending" }] });
  });

  test("an image turn makes no request, and says so, if a filter blocks its words", async () => {
    const { run, setTrouble, calls, texts, channel } = start();
    let isFirst = true;
    setTrouble(() => {
      const wasFirst = isFirst;
      isFirst = false;
      return wasFirst ? { kind: "filtered" } : undefined;
    });
    expect(await run(pictureTurn())).toBe(true);
    expect(calls.filter((call) => call === "post")).toHaveLength(2);
    expect(texts()).toEqual([expect.stringContaining("A filter here blocked")]);
    expect(channel[0]?.draft.buttons).toEqual([{ action: "retry", turnId: "job.0", label: "Retry" }]);
  });

  test("an image turn shows its end even if the platform asks it to wait", async () => {
    const { run, setTrouble, texts } = start(() => Promise.reject(new Error("No.")));
    let refusals = 0;
    setTrouble((call) => (call === "edit" && refusals++ < 2 ? { kind: "rate-limited", retryAfterMs: 1 } : undefined));
    await run(pictureTurn());
    expect(texts()).toEqual([expect.stringContaining("No image for `a fox`.")]);
  });

  test("an image turn continues if people remove its message", async () => {
    const { run, channel, setTrouble } = start();
    setTrouble((call) => {
      if (call === "upload") channel.splice(0, 1);
      return undefined;
    });
    expect(await run(pictureTurn())).toBe(true);
    expect(channel.map(({ files }) => files.length)).toEqual([1]);
  });

  // Otherwise a late write would overwrite the same message in the turn's next attempt.
  test("an aborted image turn ends once no write to its status message is under way", async () => {
    let asked = 0;
    const { run, setTrouble } = start(async (_, signal) => {
      asked += 1;
      if (asked === 1) return IMAGE;
      return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    });
    const [writing, written] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    setTrouble((call) => {
      if (call !== "edit") return undefined;
      writing.resolve();
      return written.promise;
    });
    const cut = new AbortController();
    const parts = [{ state: "pending" }, { state: "pending" }] as const;
    let isOver = false;
    const turn = pictureTurn({ parts: [...parts] });
    const running = run(turn, { cut: cut.signal }).finally(() => (isOver = true));
    const rejected = expect(running).rejects.toBe("shutdown");
    await writing.promise;
    cut.abort("shutdown");
    for (let round = 0; round < 100; round++) await soon();
    expect(isOver).toBe(false);
    written.resolve();
    await rejected;
  });

  test("an image turn that the queue gave up makes no more images, and says so", async () => {
    const { run, records, texts, calls } = start();
    await run(pictureTurn(), { isGivenUp: true });
    expect(calls).not.toContain("upload");
    expect(texts()).toEqual([expect.stringContaining("I tried several times")]);
    const parts = [{ state: "failed", canRetry: true }];
    expect(await records.loadPicture("job")).toMatchObject({ phase: "final", parts });
  });

  test("an image turn inside an answer writes no status message", async () => {
    const { runs, channel, calls } = start();
    await runs.runWithin(pictureTurn(), () => {}, signal, false);
    expect(calls).toEqual(["upload"]);
    expect(channel).toHaveLength(1);
  });
});

describe("the history of an image turn's conversation", () => {
  test("the history has a turn's images as one entry, which the message of each image finds", async () => {
    const { runs, history, read } = start();
    await runs.writeHistory(pictureTurn({ parts: [shown("a"), { state: "pending" }] }));
    await runs.writeHistory(pictureTurn({ parts: [shown("a"), shown("b")] }));
    const words = '(2 images were created and shown here for "Ada", from the prompt: "a fox")';
    const askedBy = { platform: "test", id: "ada" };
    expect(await read()).toMatchObject([
      { id: "job", askedBy, messages: [{ role: "user", content: words }], attachments: [file("a"), file("b")] },
    ]);
    for (const id of ["test:a", "test:b"]) expect((await history.find(id))?.entryId).toBe("job");
  });

  test("the history loses a deleted image, and loses the entry with the last image", async () => {
    const { runs, read } = start();
    await runs.writeHistory(pictureTurn({ parts: [shown("a"), shown("b")] }));
    await runs.writeHistory(pictureTurn({ parts: [shown("a"), deleted] }));
    expect((await read()).map(({ attachments }) => attachments)).toEqual([[file("a")]]);
    await runs.writeHistory(pictureTurn({ parts: [deleted, deleted] }));
    expect(await read()).toEqual([]);
  });

  test("an image turn does not wait for an unreachable history", async () => {
    const { runs, database, lines } = start();
    database.close();
    await runs.writeHistory(pictureTurn({ parts: [shown("a")] }));
    expect(lines.map(({ msg }) => msg)).toEqual(["an image could not be stored in the history"]);
  });
});
