import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { SinkError } from "../../src/port/errors.ts";
import { isStoreOutage, StoreError } from "../../src/store/outage.ts";

function errorOf(sql: string, prepare: (database: DatabaseSync) => void): unknown {
  const database = new DatabaseSync(":memory:");
  database.exec("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)");
  prepare(database);
  try {
    database.exec(sql);
    return undefined;
  } catch (error) {
    return error;
  } finally {
    database.close();
  }
}

const readonly = errorOf("INSERT INTO t VALUES (1, '')", (database) => database.exec("PRAGMA query_only = ON"));
const full = errorOf("INSERT INTO t VALUES (1, hex(zeroblob(100000)))", (database) =>
  database.exec("PRAGMA max_page_count = 3"),
);

describe("an outage of the store", () => {
  test("a store that does not answer and a disk that is full or read-only are outages", () => {
    expect(readonly).toMatchObject({ errcode: 8 });
    expect(full).toMatchObject({ errcode: 13 });
    for (const error of [new StoreError("away"), readonly, full]) expect(isStoreOutage(error)).toBe(true);
  });

  test("the store recognises an outage inside an error that wraps the original error", () => {
    expect(isStoreOutage(new SinkError("unavailable", "not taken", { cause: full }))).toBe(true);
    expect(isStoreOutage(new SinkError("unavailable", "a platform that is away"))).toBe(false);
  });

  test("the store does not take a mistake in the stored data for an outage", () => {
    const duplicate = errorOf("INSERT INTO t VALUES (1, '')", (database) =>
      database.exec("INSERT INTO t VALUES (1, '')"),
    );
    expect(duplicate).toBeInstanceOf(Error);
    for (const error of [duplicate, new TypeError("no"), "text", undefined]) expect(isStoreOutage(error)).toBe(false);
  });
});
