import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { createJobStore } from "../../src/imagine/job-store.ts";
import { createStores } from "../../src/store/keyv.ts";
import { ben } from "../support/events.ts";
import { recordingLog, silent } from "../support/log.ts";
import { noCopies, pictureJob } from "../support/picture-job.ts";

function start(ttlMs = 60_000) {
  const { log, lines } = recordingLog();
  const { open } = createStores({ redisUrl: undefined, database: new DatabaseSync(":memory:"), log: silent });
  return { jobs: createJobStore({ open, ttlMs, copies: noCopies, log }), open, lines };
}

describe("the store of picture jobs", () => {
  test("keeps the latest state of a job, however many are stored at once", async () => {
    const { jobs } = start();
    const job = pictureJob();
    const first = jobs.save(job);
    job.parts = [{ state: "deleted" }];
    await Promise.all([first, jobs.save(job)]);
    expect(await jobs.load("job")).toEqual(job);
    expect(await jobs.load("other")).toBeUndefined();
  });

  test("takes what it cannot read for absent, and says so", async () => {
    const { jobs, open, lines } = start();
    await open("pictures").set("job", { v: 99 });
    expect(await jobs.load("job")).toBeUndefined();
    expect(lines.map(({ msg }) => msg)).toEqual(["a picture's record cannot be read"]);
  });

  test("gives a person what they asked for, and erases it without that of others", async () => {
    const { jobs, open } = start();
    const done = { state: "done", messageId: "test:1", text: "" } as const;
    await jobs.save(pictureJob({ id: "a", parts: [done, { state: "pending" }] }));
    await jobs.save(pictureJob({ id: "b", author: ben }));
    expect(await jobs.exportAuthor("test", "ada")).toEqual([
      { id: "a", at: 1_700_000_000_000, prompt: "a fox", model: "painter", messageIds: ["test:1"] },
    ]);
    await jobs.forget("test", "ada");
    expect(await jobs.exportAuthor("test", "ada")).toEqual([]);
    expect([await jobs.load("a"), (await jobs.load("b"))?.id]).toEqual([undefined, "b"]);
    await jobs.erase(["b", "unknown"]);
    expect(await jobs.exportAuthor("test", "ben")).toEqual([]);
    const left = await Array.fromAsync(open("pictures").iterator?.(undefined) ?? []);
    expect(left).toEqual([]);
  });

  test("keeps who wants a job to end, until that is done or the person is erased", async () => {
    const { jobs, open } = start();
    await jobs.askStop("job", "test", ben);
    await jobs.askStop("other", "test", { ...ben, isModerator: true });
    expect(await jobs.whoAskedStop("job")).toEqual(ben);
    expect(await jobs.exportAuthor("test", "ben")).toEqual([]);
    await jobs.dropStop("job");
    expect(await jobs.whoAskedStop("job")).toBeUndefined();
    expect(await jobs.whoAskedStop("other")).toEqual({ ...ben, isModerator: true });
    await jobs.forget("test", "ben");
    expect(await Array.fromAsync(open("pictures").iterator?.(undefined) ?? [])).toEqual([]);
  });

  test("goes on when a job cannot be kept", async () => {
    const { log, lines } = recordingLog();
    const database = new DatabaseSync(":memory:");
    const { open } = createStores({ redisUrl: undefined, database, log: silent });
    const jobs = createJobStore({ open, ttlMs: 60_000, copies: noCopies, log });
    database.close();
    await jobs.save(pictureJob());
    expect(lines.at(-1)?.["msg"]).toBe("a picture's record could not be stored");
  });
});
