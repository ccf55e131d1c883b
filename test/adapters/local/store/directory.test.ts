import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { createDirectory, toTitle } from "../../../../adapters/local/store/directory.ts";
import { openTables } from "../../../../adapters/local/store/tables.ts";

describe("toTitle", () => {
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
  ])("makes of %j", ([text = "", title]) => expect(toTitle(text)).toBe(title));
});

describe("the directory", () => {
  test("keeps its people, channels and epoch when it is opened again", () => {
    const database = new DatabaseSync(":memory:");
    const first = openTables(database, () => 1);
    const grace = createDirectory(first).addPerson("Grace");
    createDirectory(first).addChannel("design", 2);
    const second = openTables(database, () => 3);
    const directory = createDirectory(second);
    expect(second.epoch).toBe(first.epoch);
    expect(directory.people().map((person) => person.name)).toEqual(["Ada", "Ben", "千恵", "Grace"]);
    expect(directory.person(grace?.id ?? "")).toEqual(grace);
    expect(directory.channelsSince(0, 10).map((channel) => channel.title)).toEqual(["general", "random", "design"]);
  });

  test("gives every change a number of its own, in order", () => {
    const tables = openTables(new DatabaseSync(":memory:"), () => 1);
    const directory = createDirectory(tables);
    const before = tables.lastSeq();
    const added = [directory.addPerson("Grace"), directory.addChannel("design", 2), directory.addPerson("Edsger")];
    expect(added.map((row) => row?.seq)).toEqual([before + 1, before + 2, before + 3]);
    expect(directory.peopleSince(before + 1, 10)).toEqual([added[2]]);
  });

  test("names only a chat without a title, never a channel", () => {
    const tables = openTables(new DatabaseSync(":memory:"), () => 1);
    const directory = createDirectory(tables);
    const channel = directory.addChannel("New chat", 2);
    const ids = ["chat-1", "chat-2", channel?.id ?? ""];
    tables.inTransaction(() => {
      directory.ensureChat("chat-1", "", 1);
      directory.ensureChat("chat-2", "hello", 1);
      for (const id of ids) directory.nameChat(id, "**Plans**");
    });
    expect(ids.map((id) => directory.channel(id)?.title)).toEqual(["Plans", "hello", "New chat"]);
  });

  test("leaves nothing of a change that fails half-way", () => {
    const tables = openTables(new DatabaseSync(":memory:"), () => 1);
    const before = tables.lastSeq();
    const failing = () =>
      tables.inTransaction(() => {
        createDirectory(tables).ensureChat("chat-1", "hello", 1);
        throw new Error("half-way");
      });
    expect(failing).toThrow("half-way");
    expect(tables.lastSeq()).toBe(before);
    expect(createDirectory(tables).channel("chat-1")).toBeUndefined();
  });
});
