import { describe, expect, test } from "vitest";
import { createJobButtons } from "../../src/imagine/buttons.ts";
import type { PictureJob, PicturePart } from "../../src/imagine/picture-job.ts";
import type { ActionEvent, InboundEvent } from "../../src/port/events.ts";
import { action, ada, ben, command } from "../support/events.ts";
import { fakePlatform } from "../support/fake-platform.ts";
import { silent } from "../support/log.ts";
import { pictureJob } from "../support/picture-job.ts";

const { signal } = new AbortController();
const failed: PicturePart = { state: "failed", reason: "No.", canRetry: true };
const done = (messageId: string): PicturePart => ({ state: "done", messageId, text: "" });

function start(given: Partial<PictureJob> = {}, denied: readonly string[] = []) {
  const platform = fakePlatform();
  const job = pictureJob({ isOver: true, ...given });
  const saved: PictureJob[] = [];
  const runs: string[][] = [];
  const hold = Promise.withResolvers<void>();
  const stops: string[] = [];
  const erased: string[] = [];
  const find = async (id: string) => (id === job.id ? job : undefined);
  const buttons = createJobButtons({
    jobs: {
      save: async (job) => saved.push(structuredClone(job)) > 0,
      askStop: async (id, { author }) => void stops.push(`kept ${id} ${author.name}`),
      dropStop: async (id) => void stops.push(`dropped ${id}`),
    },
    running: { find, findSettled: find, stop: (id, { author }) => Boolean(stops.push(`stopped ${id} ${author.name}`)) },
    async work({ parts }) {
      runs.push(parts.map(({ state }) => state));
      await hold.promise;
      return true;
    },
    writeHistory: async () => {},
    links: { erase: async (refs) => void erased.push(...refs.map(({ id }) => id)) },
    sinkOf: () => platform.sink,
    findRefusal: async ({ author }) => (denied.includes(author.id) ? `${author.name} may not.` : undefined),
    log: silent,
  });
  const press = (name: ActionEvent["action"], id: string, author = ada) => {
    const event = action(name, id, { author });
    buttons.onAccepted(event);
    return name === "retry" ? buttons.retry(event, signal) : buttons.remove(event, signal);
  };
  const stop = (author = ada, waiting?: InboundEvent) => buttons.stop(action("stop", "job.0", { author }), waiting);
  return { ...platform, press, stop, stops, erased, buttons, job, saved, runs, hold };
}

describe("Retry", () => {
  test("draws the failed parts alone, once for presses that come together", async () => {
    const { press, runs, hold } = start({ parts: [done("test:1"), failed, { state: "deleted" }] });
    const pressed = [press("retry", "job.0"), press("retry", "job.0")];
    hold.resolve();
    expect(await Promise.all(pressed)).toEqual([undefined, undefined]);
    expect(runs).toEqual([["done", "pending", "deleted"]]);
  });

  test("is for nobody who may have no pictures, and draws nothing for them", async () => {
    const moderator = { ...ben, isModerator: true };
    const { press, runs, hold } = start({ parts: [failed] }, [ada.id]);
    hold.resolve();
    expect(await press("retry", "job.0")).toBe("Ada may not.");
    expect(await press("retry", "job.0", moderator)).toBe("Ada may not.");
    const other = start({ parts: [failed] }, [ben.id]);
    expect(await other.press("retry", "job.0", moderator)).toBe("Ben may not.");
    expect([...runs, ...other.runs]).toEqual([]);
  });

  test("does nothing where nothing failed, and goes on where a crash cut it", async () => {
    const { press, runs, hold, job } = start({ parts: [done("test:1")] });
    hold.resolve();
    await press("retry", "job.0");
    expect(runs).toEqual([]);
    Object.assign(job, { isOver: false, parts: [{ state: "pending" }] });
    await press("retry", "job.0");
    expect(runs).toEqual([["pending"]]);
  });
});

describe("Delete", () => {
  test("takes the picture away, and only that", async () => {
    const { press, sink, channel, saved, job } = start();
    for (const nonce of ["1", "2"]) {
      const { id } = await sink.post({ markdown: nonce, buttons: [], streaming: false }, nonce, signal);
      job.parts[Number(nonce) - 1] = done(id);
    }
    await press("delete", "job.1");
    await press("delete", "job.1");
    expect(channel.map(({ nonce }) => nonce)).toEqual(["2"]);
    expect(saved).toHaveLength(1);
  });

  test("forgets a picture that is gone already, and tries again where the platform does not answer", async () => {
    const { press, saved, setTrouble } = start({ parts: [done("test:gone"), done("test:other")] });
    setTrouble(() => ({ kind: "unavailable" }));
    await expect(press("delete", "job.1")).rejects.toThrow("refused");
    expect(saved).toEqual([]);
    setTrouble(() => ({ kind: "gone" }));
    await press("delete", "job.1");
    expect(saved.map(({ parts }) => parts.map(({ state }) => state))).toEqual([["deleted", "done"]]);
  });
});

test("what was deleted can be fetched by no link any more, what stays can", async () => {
  const attachment = (id: string) => ({ platform: "test", id, name: "a.png", sizeBytes: 1 });
  const parts = ["f1", "f2"].map((id) => ({ ...done(`test:${id}`), attachment: attachment(id) }));
  const { press, erased, setTrouble } = start({ parts });
  setTrouble(() => ({ kind: "gone" }));
  await press("delete", "job.2");
  expect(erased).toEqual(["f2"]);
});

describe("Stop", () => {
  test("is kept before the job is told, so that it outlives the process", async () => {
    const { stop, stops } = start({ isOver: false });
    expect(await stop()).toBeUndefined();
    expect(stops).toEqual(["kept job Ada", "stopped job Ada"]);
  });

  test("reaches the job as soon as it is accepted", () => {
    const { buttons, stops } = start({ isOver: false });
    buttons.onAccepted(action("stop", "job.0"));
    expect(stops).toEqual(["stopped job Ada"]);
  });

  test("of a job that is over says so, and is forgotten by the Retry after it", async () => {
    const { stop, stops, press, hold } = start({ parts: [failed] });
    expect(await stop()).toBe("This has ended already.");
    expect(stops).toEqual([]);
    hold.resolve();
    await press("retry", "job.0");
    expect(stops).toEqual(["dropped job"]);
  });

  test("that ended the job needs no word when it comes up after that", async () => {
    const { buttons } = start({ parts: [failed] });
    const press = action("stop", "job.0");
    buttons.onAccepted(press);
    expect(await buttons.stop(press, undefined)).toBeUndefined();
  });

  test("of what waits is for the one who asked for it", async () => {
    const { buttons, stops } = start();
    const press = action("stop", "later.0", { author: ben });
    expect(await buttons.stop(press, command("imagine", "a fox"))).toContain("Only the person who asked");
    expect(stops).toEqual([]);
    expect(await buttons.stop(press, command("imagine", "a fox", { author: ben }))).toBeUndefined();
    expect(stops[0]).toBe("kept later Ben");
  });
});

test("Retry and Delete are for the one who asked and for moderators, as long as the picture is kept", async () => {
  const { press, runs, saved, hold } = start({ parts: [failed, done("test:1")] });
  hold.resolve();
  for (const name of ["retry", "delete"] as const) {
    expect(await press(name, "job.2", ben)).toContain("Only the person who asked");
    expect(await press(name, "gone.1")).toContain("too old");
  }
  expect([runs, saved]).toEqual([[], []]);
  expect(await press("delete", "job.2", { ...ben, isModerator: true })).toBeUndefined();
  expect(saved).toHaveLength(1);
});
