import type { DatabaseSync } from "node:sqlite";
import { transact } from "../store/database.ts";
import type { InsightStore } from "./insight-store.ts";

/** Creates the store for a single process. `now` returns Unix milliseconds and decides when entries expire. */
export function createSqliteInsight(database: DatabaseSync, now: () => number): InsightStore {
  database.exec(`
    CREATE TABLE IF NOT EXISTS insight_lists (id INTEGER PRIMARY KEY, list TEXT NOT NULL, text TEXT NOT NULL);
    CREATE INDEX IF NOT EXISTS insight_lists_by_list ON insight_lists (list, id);`);
  const append = database.prepare("INSERT INTO insight_lists (list, text) VALUES (?, ?)");
  const trim = database.prepare(
    "DELETE FROM insight_lists WHERE list = ?1 AND id <= (SELECT id FROM insight_lists WHERE list = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)",
  );
  const textsOf = database.prepare("SELECT text FROM insight_lists WHERE list = ? ORDER BY id DESC");
  const removeText = database.prepare("DELETE FROM insight_lists WHERE list = ? AND text = ?");
  const reports = new Map<string, { text: string; until: number }>();

  return {
    async push(list, text, max) {
      transact(database, () => {
        append.run(list, text);
        trim.run(list, max);
      });
    },
    list: async (list) => textsOf.all(list).map(({ text }) => String(text)),
    async remove(list, texts) {
      transact(database, () => {
        for (const text of texts) removeText.run(list, text);
      });
    },
    async report(id, text, forMs) {
      reports.set(id, { text, until: now() + forMs });
    },
    async reports() {
      for (const [id, { until }] of reports) if (until <= now()) reports.delete(id);
      return [...reports.values()].map(({ text }) => text);
    },
  };
}
