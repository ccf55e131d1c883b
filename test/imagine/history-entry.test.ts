import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { createHistory } from "../../src/history/history.ts";
import { createWriteHistory } from "../../src/imagine/history-entry.ts";
import type { PicturePart } from "../../src/imagine/picture-job.ts";
import { createStores } from "../../src/store/keyv.ts";
import { recordingLog, silent } from "../support/log.ts";
import { pictureJob } from "../support/picture-job.ts";

const file = (id: string) => ({ platform: "test", id, name: `${id}.png`, sizeBytes: 1 });
const shown = (id: string): PicturePart => ({ state: "done", messageId: `test:${id}`, attachment: file(id), text: "" });
const deleted: PicturePart = { state: "deleted" };

function start() {
  const database = new DatabaseSync(":memory:");
  const { log, lines } = recordingLog();
  const { open, inTurn } = createStores({ redisUrl: undefined, database, log: silent });
  const history = createHistory({ open, inTurn, ttlMs: 60_000, log: silent, now: Date.now });
  const read = async () => (await history.read("test:a", { maxEntries: 5 })).entries;
  return { writeHistory: createWriteHistory(history, log), history, read, database, lines };
}

describe("the history of a conversation", () => {
  test("has the pictures of a job as one entry, found by each of their messages", async () => {
    const { writeHistory, history, read } = start();
    await writeHistory(pictureJob({ parts: [shown("a"), { state: "pending" }] }));
    await writeHistory(pictureJob({ parts: [shown("a"), shown("b")] }));
    const words = '(2 pictures were drawn and shown here for "Ada", from the words: "a fox")';
    const askedBy = { platform: "test", id: "ada" };
    expect(await read()).toMatchObject([
      { id: "job", askedBy, messages: [{ role: "user", content: words }], attachments: [file("a"), file("b")] },
    ]);
    for (const id of ["test:a", "test:b"]) expect((await history.find(id))?.entryId).toBe("job");
  });

  test("loses a picture that was taken away, and the entry with the last one", async () => {
    const { writeHistory, read } = start();
    await writeHistory(pictureJob({ parts: [shown("a"), shown("b")] }));
    await writeHistory(pictureJob({ parts: [shown("a"), deleted] }));
    expect((await read()).map(({ attachments }) => attachments)).toEqual([[file("a")]]);
    await writeHistory(pictureJob({ parts: [deleted, deleted] }));
    expect(await read()).toEqual([]);
  });

  test("knows nothing of what only one person sees", async () => {
    const { writeHistory, read } = start();
    await writeHistory(pictureJob({ parts: [shown("a")], isRemembered: false }));
    expect(await read()).toEqual([]);
  });

  test("is not waited for when it is out of reach", async () => {
    const { writeHistory, database, lines } = start();
    database.close();
    await writeHistory(pictureJob({ parts: [shown("a")] }));
    expect(lines.map(({ msg }) => msg)).toEqual(["a picture could not be stored in the history"]);
  });
});
