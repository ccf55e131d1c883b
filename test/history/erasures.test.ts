import { beforeEach, describe, expect, test } from "vitest";
import { answered, said, uniqueId } from "../support/history-contract.ts";
import { openHistory } from "../support/history-store.ts";

const ada = { platform: "test", id: "ada", name: "Ada" };
const ben = { platform: "test", id: "ben", name: "Ben" };
const { database, history, open } = openHistory();
let conversation: string;
beforeEach(async () => {
  await open("history").clear();
  conversation = uniqueId();
  await history.append(conversation, said("a1", "ada asks", ada));
  await history.append(conversation, answered("t1", "to ada", ada), ["p1"], "a1");
  await history.append(conversation, said("b1", "ben asks", ben), [], "t1");
  await history.append(conversation, answered("t2", "to ben", ben), ["p2"], "b1");
  await history.append("test:elsewhere", said("a2", "ada elsewhere", ada));
});

const dump = () => JSON.stringify(database.prepare("SELECT * FROM keyv").all());
const ids = async (conversationId: string) =>
  (await history.read(conversationId, { maxEntries: 100 })).entries.map(({ id }) => id);

describe("erasing a conversation", () => {
  test("erasing a conversation for one person removes their messages and the answers to them, and keeps the rest", async () => {
    expect(await history.forgetConversation(conversation, ada)).toEqual(["a1", "t1"]);
    expect(await ids(conversation)).toEqual(["b1", "t2"]);
    expect(await ids("test:elsewhere")).toEqual(["a2"]);
    expect(await history.find("p1")).toBeUndefined();
    expect(dump()).not.toMatch(/ada asks|to ada/);
    expect(await history.forgetConversation(conversation, ada)).toEqual([]);
  });

  test("erasing a long conversation lets other work run", async () => {
    for (let index = 0; index < 500; index++) await history.append(conversation, said(`m${index}`, "x", ada));
    let turns = 0;
    const count = () => {
      turns += 1;
      if (turns < 1_000) setImmediate(count);
    };
    setImmediate(count);
    await history.forgetConversation(conversation);
    expect(turns).toBeGreaterThanOrEqual(5);
    turns = 1_000;
  });

  test("erasing a conversation for all leaves only the fact that it existed", async () => {
    await history.setFollowed(conversation, true);
    expect(await history.forgetConversation(conversation)).toEqual(["a1", "t1", "b1", "t2"]);
    expect(await ids(conversation)).toEqual([]);
    for (const id of ["a1", "p1", "b1", "t2"]) expect(await history.find(id)).toBeUndefined();
    const rows = database
      .prepare("SELECT key FROM keyv")
      .all()
      .map(({ key }) => String(key));
    expect(rows.filter((key) => key.includes(encodeURIComponent(conversation)))).toEqual([
      expect.stringContaining(":h:"),
    ]);
    expect(await history.isNew(conversation)).toBe(false);
    expect(await history.isFollowed(conversation)).toBe(true);
    await history.append(conversation, said("a3", "again", ada));
    expect(await ids(conversation)).toEqual(["a3"]);
    expect(await ids("test:elsewhere")).toEqual(["a2"]);
  });

  test("erasing a conversation also removes unreadable entries, however many", async () => {
    for (let index = 0; index < 230; index++) await history.append(conversation, said(`m${index}`, "much", ada));
    const keyv = open("history");
    const { first } = (await keyv.get(`h:${encodeURIComponent(conversation)}`)) as { first: number };
    await keyv.set(`e:${encodeURIComponent(conversation)}:${first + 120}`, { v: 9, secret: "canary" });
    expect(await history.forgetConversation(conversation)).toHaveLength(233);
    expect(dump()).not.toMatch(/canary|much/);
  });

  test("erasing an unknown conversation erases nothing, and it stays new", async () => {
    expect(await history.forgetConversation("test:nowhere")).toEqual([]);
    expect(await history.isNew("test:nowhere")).toBe(true);
  });
});
