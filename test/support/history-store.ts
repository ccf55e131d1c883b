import { afterAll } from "vitest";
import { silent } from "../../lab/support/log.ts";
import { createHistory } from "../../src/history/history.ts";
import { NO_RIGHT } from "../../src/port/right.ts";
import { openDatabase } from "../../src/store/database.ts";
import { createStores } from "../../src/store/keyv.ts";

/** A history for the tests in one file, with its database in memory. Both end after the last test. */
export function openHistory() {
  const database = openDatabase(":memory:");
  const stores = createStores({ redisUrl: undefined, database, log: silent }, NO_RIGHT);
  afterAll(async () => {
    await stores.close();
    database.close();
  });
  /** The same history with another way to access its store. */
  const toHistory = (open: typeof stores.open) =>
    createHistory({ ...stores, open, ttlMs: 600_000, log: silent, now: Date.now });
  return { database, open: stores.open, history: toHistory(stores.open), toHistory };
}
