import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { createChatList, toTitle } from "../../../../adapters/local/store/chats.ts";
import { openTables } from "../../../../adapters/local/store/tables.ts";

describe("the title of a chat", () => {
  test.for([
    ["hello", "hello"],
    ["\n\n# A **heading**\nmore", "A heading"],
    ["```\ncode", "code"],
    ["> _quoted_ `my_name` > 2 * 3 in C#", "quoted my_name > 2 * 3 in C#"],
    ["  ", "New chat"],
    ["", "New chat"],
    ["one two three four five six seven eight nine ten eleven", "one two three four five six seven eight nine…"],
    ["x".repeat(60), `${"x".repeat(48)}…`],
    ["😀".repeat(60), `${"😀".repeat(48)}…`],
    ["こんにちは", "こんにちは"],
    ["run `tracker__find_issue` for me", "run tracker__find_issue for me"],
  ])("toTitle makes of %j", ([text = "", title]) => expect(toTitle(text)).toBe(title));
});

describe("the list of chats at the local page", () => {
  test("the list of chats keeps its chats and its epoch when opened again", () => {
    const database = new DatabaseSync(":memory:");
    const first = openTables(database);
    first.inTransaction(() => createChatList(first).ensure("chat-1", "Plans", 2));
    const second = openTables(database);
    expect(second.epoch).toBe(first.epoch);
    expect(createChatList(second).since(0, 10)).toMatchObject([{ id: "chat-1", title: "Plans", createdAt: 2 }]);
  });

  test("the list of chats numbers every change, in order", () => {
    const tables = openTables(new DatabaseSync(":memory:"));
    const chats = createChatList(tables);
    const before = tables.lastSeq();
    tables.inTransaction(() => {
      for (const id of ["chat-1", "chat-2", "chat-3"]) chats.ensure(id, id, 1);
    });
    expect(chats.since(before, 10).map(({ seq }) => seq)).toEqual([before + 1, before + 2, before + 3]);
    expect(chats.since(before + 2, 10)).toMatchObject([{ id: "chat-3" }]);
  });
});
