import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { action, ada, ben, command } from "../../lab/support/events.ts";
import { fakePlatform } from "../../lab/support/fake-platform.ts";
import { silent } from "../../lab/support/log.ts";
import { noFiles, noLinks, pictureTurn } from "../../lab/support/picture-turn.ts";
import { createQuickScheduler } from "../../lab/support/quick-scheduler.ts";
import { createFindPicture } from "../../src/imagine/find-picture.ts";
import { createImagine } from "../../src/imagine/imagine.ts";
import { createPictureLine } from "../../src/imagine/waiting.ts";
import { createMetrics } from "../../src/metrics/metrics.ts";
import type { ActionEvent } from "../../src/port/events.ts";
import { toPictureId, toTurnId } from "../../src/port/ids.ts";
import { NO_RIGHT } from "../../src/port/right.ts";
import { createStores } from "../../src/store/keyv.ts";
import type { PicturePart, PictureTurn } from "../../src/turn/record.ts";
import { createTurnRecords } from "../../src/turn/records.ts";
import { createRunningTurns } from "../../src/turn/running.ts";

const { signal } = new AbortController();
const PNG = Buffer.from("iVBORw0KGgo=", "base64");
const failed: PicturePart = { state: "failed", reason: "No.", canRetry: true };
const done = (messageId: string): PicturePart => ({ state: "done", messageId, text: "" });

/** An ended turn, and a gateway that answers when `hold` is resolved. */
async function start(given: Partial<PictureTurn> = {}, denied: readonly string[] = []) {
  const platform = fakePlatform();
  const { open, inTurn } = createStores(
    { redisUrl: undefined, database: new DatabaseSync(":memory:"), log: silent },
    NO_RIGHT,
  );
  const records = createTurnRecords({ open, inTurn, ttlMs: 60_000, files: noFiles, log: silent });
  const turns = createRunningTurns();
  const hold = Promise.withResolvers<void>();
  const drawn: string[] = [];
  const erased: string[] = [];
  const imagine = createImagine({
    right: NO_RIGHT,
    line: createPictureLine(),
    records,
    turns,
    ...createFindPicture(records, turns),
    findRefusal: async (turn, { id, name } = turn.author) => (denied.includes(id) ? `${name} may not.` : undefined),
    references: {
      ...noLinks,
      prepare: async () => ({ ok: true, parts: [] }),
      erase: async (refs) => void erased.push(...refs.map(({ id }) => id)),
    },
    gateway: {
      async generateImage({ prompt }) {
        drawn.push(prompt);
        await hold.promise;
        return { bytes: PNG, mimeType: "image/png", text: "" };
      },
    },
    files: noFiles,
    history: { append: async () => {}, remove: async () => true },
    scheduler: createQuickScheduler(1),
    adapterOf: () => platform.adapter,
    sinkOf: () => platform.sink,
    onProgress: () => {},
    metrics: createMetrics(),
    quota: {
      reserve: async () => ({
        maxTokens: undefined,
        tight: undefined,
        settle: async () => {},
      }),
    },
    listModels: async () => [],
    model: "painter",
    maxReferences: 8,
    log: silent,
  });
  await records.savePicture(pictureTurn({ phase: "final", ...given }));
  const press = async (name: ActionEvent["action"], id: string, author = ada) => {
    const event = action(name, id, { author });
    turns.interrupt(event);
    return (await imagine.work({ events: [event] }, Promise.resolve(true), signal)).refusal;
  };
  const stateNow = async () => (await records.loadPicture("job"))?.parts.map(({ state }) => state);
  return { ...platform, imagine, turns, records, press, stateNow, hold, drawn, erased };
}

describe("Retry of failed images", () => {
  test("Retry creates nothing for a person who is not allowed to create images", async () => {
    const moderator = { ...ben, isModerator: true };
    const { press, drawn } = await start({ parts: [failed] }, [ada.id]);
    expect(await press("retry", "job.0")).toBe("Ada may not.");
    expect(await press("retry", "job.0", moderator)).toBe("Ada may not.");
    const other = await start({ parts: [failed] }, [ben.id]);
    expect(await other.press("retry", "job.0", moderator)).toBe("Ben may not.");
    expect([...drawn, ...other.drawn]).toEqual([]);
  });

  test("Retry creates the images that failed in another process, even if this process knew only the waiting turn", async () => {
    const { imagine, press, hold, records, drawn } = await start();
    const asked = { ...command("imagine", "a boat"), lane: { id: "d", kind: "drawing", workId: "w" } as const };
    imagine.onWaiting(asked);
    const id = toTurnId(asked.key);
    await records.savePicture(pictureTurn({ id, phase: "final", posted: ["test:status"], parts: [failed] }));
    hold.resolve();
    await press("retry", toPictureId(id, 0));
    expect(drawn).toEqual(["a fox"]);
    expect((await records.loadPicture(id))?.parts).toMatchObject([{ state: "done" }]);
  });

  test("Retry does nothing if no image failed, and continues a turn that a crash interrupted", async () => {
    const { press, hold, drawn, records } = await start({ parts: [done("test:1")] });
    hold.resolve();
    await press("retry", "job.0");
    expect(drawn).toEqual([]);
    await records.savePicture(pictureTurn({ phase: "posted", posted: ["test:status"] }));
    await press("retry", "job.0");
    expect(drawn).toEqual(["a fox"]);
  });
});

describe("Delete on an image", () => {
  test("Delete removes one image and no others", async () => {
    const { press, sink, channel, records, stateNow } = await start();
    const parts: PicturePart[] = [];
    for (const nonce of ["1", "2"]) {
      parts.push(done((await sink.post({ markdown: nonce, buttons: [], streaming: false }, nonce, signal)).id));
    }
    await records.savePicture(pictureTurn({ phase: "final", parts }));
    await press("delete", "job.1");
    await press("delete", "job.1");
    expect(channel.map(({ nonce }) => nonce)).toEqual(["2"]);
    expect(await stateNow()).toEqual(["deleted", "done"]);
  });

  test("Delete forgets an image that is already gone, and retries if the platform does not answer", async () => {
    const { press, stateNow, setTrouble } = await start({ parts: [done("test:gone"), done("test:other")] });
    setTrouble(() => ({ kind: "unavailable" }));
    await expect(press("delete", "job.1")).rejects.toThrow("refused");
    expect(await stateNow()).toEqual(["done", "done"]);
    setTrouble(() => ({ kind: "gone" }));
    await press("delete", "job.1");
    expect(await stateNow()).toEqual(["deleted", "done"]);
  });

  test("Delete ends the image's links and keeps the links of other images", async () => {
    const attachment = (id: string) => ({ platform: "test", id, name: "a.png", sizeBytes: 1 });
    const parts = ["f1", "f2"].map((id) => ({ ...done(`test:${id}`), attachment: attachment(id) }));
    const { press, erased, setTrouble } = await start({ parts });
    setTrouble(() => ({ kind: "gone" }));
    await press("delete", "job.2");
    expect(erased).toEqual(["f2"]);
  });
});

describe("Stop on an image turn", () => {
  test("a late Stop says that it came too late, to people who can press it", async () => {
    const { press } = await start({ parts: [failed] });
    expect(await press("stop", "job.0")).toBe("This has already ended.");
    expect(await press("stop", "job.0", ben)).toContain("Only the person who asked");
  });

  test("a Stop that waits together with its turn ends the turn before any request", async () => {
    const { imagine, drawn, texts } = await start();
    const asked = command("imagine", "a boat");
    const press = action("stop", toPictureId(toTurnId(asked.key), 0));
    const { done: events } = await imagine.work({ events: [asked, press] }, Promise.resolve(true), signal);
    expect(events).toEqual([asked, press]);
    expect(drawn).toEqual([]);
    expect(texts()).toEqual(["No image for `a boat`.\n\nStopped."]);
  });
});

test("only the asker and moderators can use Retry and Delete, while the image is stored", async () => {
  const { press, drawn, stateNow } = await start({ parts: [failed, done("test:1")] });
  for (const name of ["retry", "delete"] as const) {
    expect(await press(name, "job.2", ben)).toContain("Only the person who asked");
    expect(await press(name, "gone.1")).toContain("too old");
  }
  expect([drawn, await stateNow()]).toEqual([[], ["failed", "done"]]);
  expect(await press("delete", "job.2", { ...ben, isModerator: true })).toBeUndefined();
  expect(await stateNow()).toEqual(["failed", "deleted"]);
});
