import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { createMessages } from "../../../../adapters/local/store/messages.ts";
import { openTables } from "../../../../adapters/local/store/tables.ts";
import { toMessageInput } from "../message-input.ts";

describe("the tables of the local page", () => {
  test("the tables never reuse an id of a deleted database, because histories outlive the file", () => {
    const ids = Array.from({ length: 5 }, () => {
      const tables = openTables(new DatabaseSync(":memory:"));
      const messages = createMessages(tables);
      const insert = (nonce: string) => messages.insert(toMessageInput(nonce)).id;
      const [first, second] = tables.inTransaction(() => [insert("one"), insert("two")]);
      expect(second).toBe((first ?? 0) + 1);
      return first ?? 0;
    });
    expect(new Set(ids).size).toBe(5);
    expect(ids.every(Number.isSafeInteger)).toBe(true);
    expect(Math.min(...ids.map((id, index) => Math.abs(id - (ids[index - 1] ?? 0))))).toBeGreaterThan(1_000);
  });

  test("the tables roll back everything if the work in a transaction fails", () => {
    const tables = openTables(new DatabaseSync(":memory:"));
    const before = tables.lastSeq();
    const work = () => {
      tables.nextSeq();
      throw new Error("no");
    };
    expect(() => tables.inTransaction(work)).toThrow("no");
    expect(tables.lastSeq()).toBe(before);
  });
});
