import { afterAll } from "vitest";
import { createHistory } from "../../src/history/history.ts";
import { openDatabase } from "../../src/store/database.ts";
import { createStores } from "../../src/store/keyv.ts";
import { silent } from "./log.ts";

/** A history for the tests of one file, with the database in memory that keeps it; both go when the last test is over. */
export function openHistory() {
  const database = openDatabase(":memory:");
  const stores = createStores({ redisUrl: undefined, database, log: silent });
  afterAll(async () => {
    await stores.close();
    database.close();
  });
  /** The same history over another way to its store. */
  const toHistory = (open: typeof stores.open) =>
    createHistory({ ...stores, open, ttlMs: 600_000, log: silent, now: Date.now });
  return { database, open: stores.open, history: toHistory(stores.open), toHistory };
}
