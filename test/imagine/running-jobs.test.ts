import { describe, expect, test } from "vitest";
import type { PictureJob } from "../../src/imagine/picture-job.ts";
import { createRunningJobs } from "../../src/imagine/running-jobs.ts";
import type { Author } from "../../src/port/events.ts";
import { ada, ben } from "../support/events.ts";
import { pictureJob } from "../support/picture-job.ts";

const { signal } = new AbortController();
const by = (author: Author) => ({ author, reply: pictureJob().reply });

function start(stored?: PictureJob, settleMs?: number) {
  const loads: Array<() => void> = [];
  const load = async (id: string) => {
    for (const tell of loads.splice(0)) tell();
    return id === stored?.id ? stored : undefined;
  };
  /** Resolves when the store is asked. */
  const asked = () => new Promise<void>((resolve) => loads.push(resolve));
  return { running: createRunningJobs({ load }, settleMs), asked };
}

describe("a job that runs", () => {
  test("is found instead of the one that is stored", async () => {
    const { running } = start(pictureJob({ prompt: "stored" }));
    const job = pictureJob({ prompt: "running" });
    expect(await running.whileRunning(job, () => running.find("job"))).toBe(job);
    expect((await running.find("job"))?.prompt).toBe("stored");
  });

  test("ends for the one who asked for it, and for moderators", async () => {
    const { running } = start();
    await running.whileRunning(pictureJob(), async (stop) => {
      expect(running.stop("job", by(ben))).toBe(false);
      expect(stop.aborted).toBe(false);
      expect(running.stop("job", by(ada))).toBe(true);
      expect(stop.reason).toBe("stopped");
    });
    await running.whileRunning(pictureJob(), async (stop) => {
      expect(running.stop("job", by({ ...ben, isModerator: true }))).toBe(true);
      expect(stop.aborted).toBe(true);
    });
    expect(running.stop("job", by(ada))).toBeUndefined();
  });
});

describe("a button of a picture that is not known yet", () => {
  test("waits until its job knows of it", async () => {
    const { running } = start();
    const job = pictureJob({ parts: [{ state: "pending" }, { state: "pending" }] });
    const end = Promise.withResolvers<void>();
    const work = running.whileRunning(job, () => end.promise);
    const found = running.findSettled("job", 2, signal);
    job.parts[0] = { state: "deleted" };
    running.settle("job");
    job.parts[1] = { state: "done", messageId: "test:2", text: "" };
    running.settle("job");
    expect((await found)?.parts[1]?.state).toBe("done");
    end.resolve();
    await work;
  });

  test("waits also for a job that is yet to be gone on with after a crash", async () => {
    const stored = pictureJob();
    const { running, asked } = start(stored);
    const isAsked = asked();
    const found = running.findSettled("job", 1, signal);
    await isAsked;
    const resumed = structuredClone(stored);
    await running.whileRunning(resumed, async () => {
      resumed.parts = [{ state: "done", messageId: "test:1", text: "" }];
      running.settle("job");
      expect(await found).toBe(resumed);
    });
  });

  test("waits for nothing that is over, unknown, or not coming", async () => {
    const { running } = start(pictureJob({ isOver: true }), 1);
    expect(await running.findSettled("job", 1, signal)).toMatchObject({ isOver: true });
    expect(await running.findSettled("gone", 1, signal)).toBeUndefined();
    const cut = start(pictureJob(), 1);
    expect(await cut.running.findSettled("job", 1, signal)).toMatchObject({ parts: [{ state: "pending" }] });
  });

  test("waits no longer than its own work", async () => {
    const { running, asked } = start(pictureJob());
    const controller = new AbortController();
    const isAsked = asked();
    const found = running.findSettled("job", 1, controller.signal);
    await isAsked;
    controller.abort("shutdown");
    await expect(found).rejects.toBe("shutdown");
  });
});
