import { DatabaseSync } from "node:sqlite";
import { setImmediate as soon } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import type { Gateway } from "../../src/gateway/client.ts";
import { createHistory } from "../../src/history/history.ts";
import { createWriteHistory } from "../../src/imagine/history-entry.ts";
import { createJobRuns } from "../../src/imagine/job-run.ts";
import { createJobStore } from "../../src/imagine/job-store.ts";
import { createMetrics } from "../../src/metrics/metrics.ts";
import { createQuota } from "../../src/quota/quota.ts";
import { createStores } from "../../src/store/keyv.ts";
import { createUsage } from "../../src/usage/usage.ts";
import { fakePlatform } from "../support/fake-platform.ts";
import { silent } from "../support/log.ts";
import { noCopies, noLinks, pictureJob } from "../support/picture-job.ts";

const { signal } = new AbortController();
const PNG = Buffer.from("iVBORw0KGgo=", "base64");
const IMAGE = { bytes: PNG, mimeType: "image/png", text: "", usage: { promptTokens: 7, completionTokens: 258 } };

function start(generateImage: Gateway["generateImage"] = async () => IMAGE) {
  const platform = fakePlatform();
  const { open, inTurn, counters } = createStores({
    redisUrl: undefined,
    database: new DatabaseSync(":memory:"),
    log: silent,
  });
  const common = { open, inTurn, ttlMs: 60_000, log: silent };
  const [jobs, history] = [
    createJobStore({ ...common, copies: noCopies, links: noLinks }),
    createHistory({ ...common, now: Date.now }),
  ];
  const metrics = createMetrics();
  const usage = createUsage({ open, counters, log: silent, now: Date.now });
  const pseudonym = (_: string, userId: string) => userId;
  const quota = createQuota({ policy: () => ({}), counters, usage, pseudonym, now: Date.now, log: silent });
  const runs = createJobRuns({
    gateway: { generateImage },
    references: { ...noLinks, prepare: async () => ({ ok: true, parts: [] }) },
    jobs,
    onSettled: () => {},
    copies: noCopies,
    writeHistory: createWriteHistory(history, silent),
    sinkOf: () => platform.sink,
    metrics,
    quota,
    log: silent,
  });
  return { ...platform, jobs, history, runs, metrics, usage };
}

describe("the run of a job", () => {
  test("keeps what became of it, and counts", async () => {
    const { runs, jobs, history, metrics, usage, calls } = start();
    const job = pictureJob();
    expect(await runs.run(job, signal, signal)).toBe(true);
    expect(calls).toEqual(["post", "upload", "remove"]);
    expect(await jobs.load("job")).toMatchObject({
      isOver: true,
      parts: [{ state: "done", tokens: 265 }],
    });
    expect((await jobs.load("job"))?.statusId).toBeUndefined();
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

  test("draws nothing where nothing can be written", async () => {
    const { runs, jobs, setTrouble, calls } = start();
    setTrouble(() => ({ kind: "forbidden" }));
    expect(await runs.run(pictureJob(), signal, signal)).toBe(false);
    expect(calls).toEqual(["post"]);
    expect(await jobs.load("job")).toMatchObject({ isOver: true, parts: [{ state: "pending" }] });
  });

  // What goes on with the job writes the same message, and would be overwritten by what is late.
  test("that is cut ends when its status message is not being written any more", async () => {
    let asked = 0;
    const { runs, setTrouble } = start(async (_, signal) => {
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
    const running = runs.run(pictureJob({ parts: [...parts] }), signal, cut.signal).finally(() => (isOver = true));
    const rejected = expect(running).rejects.toBe("shutdown");
    await writing.promise;
    cut.abort("shutdown");
    for (let round = 0; round < 100; round++) await soon();
    expect(isOver).toBe(false);
    written.resolve();
    await rejected;
  });

  test("gives up parts that are not tried any more, and says so", async () => {
    const { runs, jobs, texts, calls } = start();
    await runs.giveUp(pictureJob(), signal);
    expect(calls).not.toContain("upload");
    expect(texts()).toEqual([expect.stringContaining("Given up: I tried this again and again")]);
    expect(await jobs.load("job")).toMatchObject({ isOver: true, parts: [{ state: "failed", canRetry: true }] });
  });

  test("of a private job leaves nothing in the conversation", async () => {
    const { runs, history } = start();
    await runs.run(pictureJob({ isRemembered: false }), signal, signal);
    expect(await history.isNew("test:a")).toBe(true);
  });

  test("inside a turn writes no status message", async () => {
    const { runs, channel, calls } = start();
    await runs.runWithin(pictureJob(), () => {}, signal, false);
    expect(calls).toEqual(["upload"]);
    expect(channel).toHaveLength(1);
  });
});
