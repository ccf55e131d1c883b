import { DatabaseSync } from "node:sqlite";
import { expect, onTestFinished, test } from "vitest";
import { toTakeTurn } from "../../../adapters/discord/stores.ts";
import { silent } from "../../../lab/support/log.ts";
import { NO_RIGHT } from "../../../src/port/right.ts";
import { createStores } from "../../../src/store/keyv.ts";

test("a restarted process waits as long after its predecessor's session start as Discord demands", async () => {
  const database = new DatabaseSync(":memory:");
  const start = () => {
    const stores = createStores({ redisUrl: undefined, database, log: silent }, NO_RIGHT);
    onTestFinished(() => stores.close());
    return toTakeTurn(stores);
  };
  const [predecessor, restarted] = [start(), start()];
  expect(await predecessor("0", 60_000)).toBe(true);
  expect(await restarted("0", 60_000)).toBe(false);
  expect(await restarted("1", 60_000)).toBe(true);
});
