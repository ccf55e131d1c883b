import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { FencedError } from "../../src/concurrency/fence.ts";
import { createHistory } from "../../src/history/history.ts";
import { createStores, type Stores } from "../../src/store/keyv.ts";
import { createTurnRecords, newRecord, type TurnRecord } from "../../src/turn/record.ts";
import { removePosted, removeStrays, takeBack } from "../../src/turn/take-back.ts";
import { startEngine } from "../support/engine.ts";
import { message } from "../support/events.ts";
import { eventually } from "../support/eventually.ts";
import { fakePlatform } from "../support/fake-platform.ts";
import { silent } from "../support/log.ts";

/** A turn whose process died while it posted, and a platform that refuses the first removal. */
async function start() {
  const { open, inTurn } = createStores({ redisUrl: undefined, database: new DatabaseSync(":memory:"), log: silent });
  const records = createTurnRecords({ open, inTurn, ttlMs: 60_000, log: silent });
  const history = createHistory({ open, inTurn, ttlMs: 60_000, log: silent, now: Date.now });
  const platform = fakePlatform();
  let refusals = 1;
  platform.setTrouble((call) => (call === "remove" && refusals-- > 0 ? { kind: "rate-limited" } : undefined));
  const question = message("tea?");
  const record = { ...newRecord([question], [question]), attempts: 1, isPosting: true };
  return { platform, records, record, deps: { records, history, adapterOf: () => platform.adapter, log: silent } };
}

test("a post that may have been made is looked for once, however often its removal is refused", async () => {
  const { platform, records, record, deps } = await start();
  await records.save(record);
  await expect(takeBack(deps, record)).rejects.toThrow("remove was refused");
  const stored = await records.load(record.id);
  expect(stored).toMatchObject({ isPosting: false, posted: [platform.channel[0]?.id] });
  if (stored !== undefined) await takeBack(deps, stored);
  expect(platform.calls).toEqual(["post", "remove", "remove"]);
  expect(platform.channel).toEqual([]);
});

test("the record of a turn that was erased does not come back while its messages are removed", async () => {
  const { platform, records, record, deps } = await start();
  await expect(removePosted(deps, record)).rejects.toThrow("remove was refused");
  expect(await records.load(record.id)).toBeUndefined();
  await removePosted(deps, record);
  expect(platform.channel).toEqual([]);
});

describe("a post that was made when its process had stood still, and another one answered meanwhile", () => {
  const LOOK_MS = 5;

  /** Two messages of an answer, the first of which whoever took over knows. */
  async function leaveBehind(found: Partial<TurnRecord>) {
    const { platform, records, record, deps } = await start();
    platform.setTrouble(() => undefined);
    const sink = platform.adapter.sink(record.reply);
    const draft = { markdown: "Tea", buttons: [], streaming: true };
    const { signal } = new AbortController();
    const posted = [(await sink.post(draft, "n0", signal)).id, (await sink.post(draft, "n1", signal)).id];
    const stored: TurnRecord = { ...record, posted: posted.slice(0, 1), phase: "posted", isPosting: false, ...found };
    await records.save(stored);
    const removing = removeStrays(deps, { ...record, posted }, LOOK_MS);
    return { platform, records, stored, posted, removing, ids: () => platform.channel.map(({ id }) => id) };
  }

  test("is removed once the answer has ended, until when it may still be found", async () => {
    const { platform, records, stored, posted, removing, ids } = await leaveBehind({});
    await eventually(() => platform.calls).not.toContain("remove");
    expect(ids()).toEqual(posted);
    await records.save({ ...stored, phase: "final" });
    await removing;
    expect(ids()).toEqual(posted.slice(0, 1));
  });

  test("stays where it was found", async () => {
    const { records, stored, posted, removing, ids } = await leaveBehind({});
    await records.save({ ...stored, posted, phase: "final" });
    await removing;
    expect(ids()).toEqual(posted);
  });

  test("is looked for by the process that made it", async () => {
    const [question, lost, held] = [message("tea?"), new AbortController(), Promise.withResolvers<void>()];
    const wrapStores = (stores: Stores): Stores => ({
      ...stores,
      open(name) {
        const keyv = stores.open(name);
        const setMany = keyv.setMany.bind(keyv);
        keyv.setMany = async (entries) => {
          if (lost.signal.aborted) throw new FencedError("Another process does this by now.");
          return setMany(entries);
        };
        return keyv;
      },
    });
    const engine = startEngine({ wrapStores, scripts: [["Tea is a drink."]] });
    engine.setTrouble((call) => (call === "post" ? held.promise : undefined));
    const working = engine.worker.work([question], lost.signal).catch(() => {});
    await eventually(() => engine.calls).toContain("post");
    const record = await engine.records.answerTo(question.messageId);
    if (record !== undefined) await engine.records.save({ ...record, posted: ["test:theirs"], phase: "final" });
    lost.abort("lost");
    held.resolve();
    await working;
    await eventually(() => engine.calls).toContain("remove");
    await eventually(() => engine.channel).toEqual([]);
  });
});
