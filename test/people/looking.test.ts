import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { openBotStores } from "../../lab/support/bot-store.ts";
import { silent } from "../../lab/support/log.ts";
import { createLooking } from "../../src/people/looking.ts";

const ada = { platform: "test", authorId: "ada" };

function setUp() {
  const database = new DatabaseSync(":memory:");
  let time = Date.now();
  const begin = () => createLooking({ ...openBotStores(database), now: () => time, log: silent });
  return { begin, pass: (ms: number) => void (time += ms) };
}

test("another process knows the channel that a person has open, per thread or otherwise per conversation", async () => {
  const { begin } = setUp();
  const [one, other] = [begin(), begin()];
  await one.note(ada, "C1");
  await one.note({ ...ada, threadId: "1.0" }, "C2");
  expect(await other.read({ ...ada, threadId: "1.0" })).toBe("C2");
  expect(await other.read({ ...ada, threadId: "2.0" })).toBe("C1");
  expect(await other.read({ ...ada, authorId: "ben" })).toBeUndefined();
  await one.note(ada, undefined);
  expect(await other.read({ ...ada, threadId: "2.0" })).toBeUndefined();
  expect(await other.read({ ...ada, threadId: "1.0" })).toBe("C2");
});

test("the bot forgets the open channel after a day, and keeps only the newest twenty", async () => {
  const { begin, pass } = setUp();
  const looking = begin();
  for (let thread = 0; thread <= 20; thread++) await looking.note({ ...ada, threadId: `${thread}` }, `C${thread}`);
  const kept = await looking.exportAuthor("test", "ada");
  expect([kept.length, kept[0]?.channelId, kept.at(-1)?.channelId]).toEqual([20, "C1", "C20"]);
  pass(86_400_000);
  expect(await looking.read({ ...ada, threadId: "20" })).toBeUndefined();
  expect(await looking.exportAuthor("test", "ada")).toEqual([]);
});

test("the bot stores all concurrent changes of one person's open channels", async () => {
  const looking = setUp().begin();
  await Promise.all(["1", "2", "3"].map((threadId) => looking.note({ ...ada, threadId }, `C${threadId}`)));
  expect((await looking.exportAuthor("test", "ada")).map(({ channelId }) => channelId)).toEqual(["C1", "C2", "C3"]);
});

test("the open channel is unknown while the store is unavailable", async () => {
  const stores = openBotStores(new DatabaseSync(":memory:"));
  const inTurn = () => Promise.reject(new Error("down"));
  const open = (namespace: string) => Object.assign(stores.open(namespace), { get: inTurn });
  const looking = createLooking({ open, inTurn, now: Date.now, log: silent });
  await looking.note(ada, "C1");
  expect(await looking.read(ada)).toBeUndefined();
});
