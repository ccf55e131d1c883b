import { describe, expect, test } from "vitest";
import { pictureTurn } from "../../lab/support/picture-turn.ts";
import { createFindPicture } from "../../src/imagine/find-picture.ts";
import type { PictureTurn } from "../../src/turn/record.ts";
import { createRunningPictures, createRunningTurns } from "../../src/turn/running.ts";

const { signal } = new AbortController();
const shown = { state: "done", messageId: "test:2", text: "" } as const;

function start(stored?: PictureTurn, settleMs = 60_000) {
  const looks: Array<() => void> = [];
  const loadPicture = async (id: string) => {
    for (const tell of looks.splice(0)) tell();
    return id === stored?.id ? stored : undefined;
  };
  /** Resolves when the store is read. */
  const asked = () => new Promise<void>((resolve) => looks.push(resolve));
  const turns = createRunningTurns();
  const times = { settleMs, lookMs: 1 };
  return { ...createFindPicture({ loadPicture }, turns, times), turns, asked };
}

function run(record: PictureTurn) {
  const running = createRunningPictures(record.id);
  running.open(record);
  return running;
}

test("the lookup of an image prefers a running turn to the stored turn", async () => {
  const { find, turns } = start(pictureTurn({ prompt: "stored" }));
  const turn = pictureTurn({ prompt: "running" });
  expect(await turns.whileRunning(run(turn), () => find("job"))).toBe(turn);
  expect((await find("job"))?.prompt).toBe("stored");
});

test("the lookup of an image finds a running turn in the store if no process has read its record yet", async () => {
  const { find, turns } = start(pictureTurn({ prompt: "stored" }));
  expect((await turns.whileRunning(run(pictureTurn({ parts: [] })), () => find("job")))?.prompt).toBe("stored");
});

describe("a button of an image that is not in the record yet", () => {
  test("a button also waits for a turn that another process runs or must resume after a crash", async () => {
    const stored = pictureTurn();
    const { findSettled, asked } = start(stored);
    const isAsked = asked();
    const found = findSettled("job", 1, signal);
    await isAsked;
    stored.parts = [shown];
    expect((await found)?.parts).toEqual([shown]);
  });

  test("a button does not wait for an image that failed, is unknown, or does not appear in time", async () => {
    const { findSettled } = start(pictureTurn({ phase: "final" }));
    expect(await findSettled("job", 1, signal)).toMatchObject({ phase: "final" });
    expect(await findSettled("gone", 1, signal)).toBeUndefined();
    const cut = start(pictureTurn(), 1);
    expect(await cut.findSettled("job", 1, signal)).toMatchObject({ parts: [{ state: "pending" }] });
  });

  test("a button stops waiting when its work is aborted", async () => {
    const { findSettled, asked } = start(pictureTurn());
    const controller = new AbortController();
    const isAsked = asked();
    const found = findSettled("job", 1, controller.signal);
    await isAsked;
    controller.abort("shutdown");
    await expect(found).rejects.toBe("shutdown");
  });
});
