import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { createHistory } from "../../src/history/history.ts";
import { createStores } from "../../src/store/keyv.ts";
import { createTurnRecords, newRecord } from "../../src/turn/record.ts";
import { removePosted, takeBack } from "../../src/turn/take-back.ts";
import { message } from "../support/events.ts";
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
