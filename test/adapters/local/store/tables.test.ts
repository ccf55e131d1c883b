import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { createMessages } from "../../../../adapters/local/store/messages.ts";
import { openTables } from "../../../../adapters/local/store/tables.ts";
import { toMessageInput } from "../message-input.ts";

describe("the tables of the local page", () => {
  test("that an earlier version made get the columns they lack, and keep what stands in them", () => {
    const database = new DatabaseSync(":memory:");
    const tables = openTables(database, () => 1);
    const { id } = tables.inTransaction(() => createMessages(tables).insert(toMessageInput("bot:1", { text: "old" })));
    database.exec(`ALTER TABLE local_messages DROP COLUMN options;
      ALTER TABLE local_messages DROP COLUMN moved_behind; ALTER TABLE local_messages DROP COLUMN reply_to;
      ALTER TABLE local_files DROP COLUMN alt_text;
      ALTER TABLE local_files DROP COLUMN is_spoiler; ALTER TABLE local_channels DROP COLUMN is_deleted;
      DROP TABLE local_judgements;`);
    const again = openTables(database, () => 2);
    expect(again.epoch).toBe(tables.epoch);
    expect(createMessages(again).find(id)).toMatchObject({
      text: "old",
      options: {},
      movedBehind: null,
      replyTo: null,
      judgements: {},
      files: [],
    });
  });

  test("never use an id that another database may have used: histories outlive the file", () => {
    const ids = Array.from({ length: 5 }, () => {
      const tables = openTables(new DatabaseSync(":memory:"), () => 1);
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

  test("take back everything when the work in a transaction fails", () => {
    const tables = openTables(new DatabaseSync(":memory:"), () => 1);
    const before = tables.lastSeq();
    const work = () => {
      tables.nextSeq();
      throw new Error("no");
    };
    expect(() => tables.inTransaction(work)).toThrow("no");
    expect(tables.lastSeq()).toBe(before);
  });
});
