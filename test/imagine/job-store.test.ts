import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { createJobStore } from "../../src/imagine/job-store.ts";
import { createStores } from "../../src/store/keyv.ts";
import { ben } from "../support/events.ts";
import { recordingLog, silent } from "../support/log.ts";
import { noCopies, noLinks, pictureJob } from "../support/picture-job.ts";

function start(ttlMs = 60_000) {
  const { log, lines } = recordingLog();
  const { open, inTurn } = createStores({ redisUrl: undefined, database: new DatabaseSync(":memory:"), log: silent });
  return { jobs: createJobStore({ open, inTurn, ttlMs, copies: noCopies, links: noLinks, log }), open, lines };
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
    expect(await jobs.erase(({ id }) => id === "b" || id === "unknown")).toMatchObject([{ id: "b" }]);
    expect(await jobs.exportAuthor("test", "ben")).toEqual([]);
    const left = await Array.fromAsync(open("pictures").iterator?.(undefined) ?? []);
    expect(left).toEqual([]);
  });

  test("ends the links to what it started from and to its pictures when a job is erased, or its person", async () => {
    const links: string[] = [];
    const { open, inTurn } = createStores({ redisUrl: undefined, database: new DatabaseSync(":memory:"), log: silent });
    const jobs = createJobStore({
      open,
      inTurn,
      ttlMs: 60_000,
      copies: noCopies,
      links: {
        erase: async (refs, jobId = "any job") => void links.push(...refs.map(({ id }) => `${id} of ${jobId}`)),
        forget: async (platform, authorId) => void links.push(`all of ${platform} ${authorId}`),
      },
      log: silent,
    });
    const toRef = (id: string) => ({ platform: "test", id, name: "a.png", sizeBytes: 1 });
    const done = { state: "done", messageId: "test:1", attachment: toRef("drawn"), text: "" } as const;
    const job = pictureJob({ references: [toRef("given")], parts: [done, { state: "deleted" }] });
    await jobs.save(job);
    await jobs.erase(({ id }) => id === "job");
    expect(links.splice(0)).toEqual(["given of job", "drawn of any job"]);
    await jobs.save(structuredClone(job));
    await jobs.forget("test", "ada");
    expect(links).toEqual(["all of test ada", "drawn of any job"]);
  });

  test("does not store again what was erased meanwhile, and says so", async () => {
    const { jobs } = start();
    const job = pictureJob();
    expect(await jobs.save(job)).toBe(true);
    const loaded = await jobs.load("job");
    await jobs.erase(() => true);
    expect([await jobs.save(job), loaded && (await jobs.save(loaded))]).toEqual([false, false]);
    expect(await jobs.load("job")).toBeUndefined();
  });

  test("keeps who wants a job to end, until that is done or the person is erased", async () => {
    const { jobs, open } = start();
    const [job, other] = [pictureJob(), pictureJob({ id: "other" })];
    const { reply } = job;
    await jobs.askStop("job", { author: ben, reply: { ...reply, extra: { token: "secret" } } });
    await jobs.askStop("other", { author: { ...ben, isModerator: true }, reply });
    expect(await jobs.whoAskedStop(job)).toEqual({ author: ben, reply });
    expect(await jobs.exportAuthor("test", "ben")).toEqual([]);
    await jobs.dropStop("job");
    expect(await jobs.whoAskedStop(job)).toBeUndefined();
    expect(await jobs.whoAskedStop(other)).toEqual({ author: { ...ben, isModerator: true }, reply });
    await jobs.forget("test", "ben");
    expect(await Array.fromAsync(open("pictures").iterator?.(undefined) ?? [])).toEqual([]);
  });

  test("reads who wanted a job to end as it was kept before places were kept with it", async () => {
    const { jobs, open } = start();
    const job = pictureJob();
    await open("pictures").set("stop:job", { id: "ben", name: "Ben" });
    expect(await jobs.whoAskedStop(job)).toEqual({ author: ben, reply: job.reply });
  });

  test("goes on when a job cannot be kept", async () => {
    const { log, lines } = recordingLog();
    const database = new DatabaseSync(":memory:");
    const { open, inTurn } = createStores({ redisUrl: undefined, database, log: silent });
    const jobs = createJobStore({ open, inTurn, ttlMs: 60_000, copies: noCopies, links: noLinks, log });
    database.close();
    await jobs.save(pictureJob());
    expect(lines.at(-1)?.["msg"]).toBe("a picture's record could not be stored");
  });
});
