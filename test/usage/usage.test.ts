import { randomUUID } from "node:crypto";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { ada, ben } from "../../lab/support/events.ts";
import { recordingLog, silent } from "../../lab/support/log.ts";
import type { Author, ReplyAddress } from "../../src/port/events.ts";
import { NO_RIGHT } from "../../src/port/right.ts";
import { createStores } from "../../src/store/keyv.ts";
import { type Amounts, createUsage, describeAmounts, NOTHING } from "../../src/usage/usage.ts";

const general: ReplyAddress = { platform: "test", channelId: "general", workspaceId: "acme" };
const other: ReplyAddress = { platform: "test", channelId: "other", workspaceId: "acme" };
const ofAda = { platform: "test", authorId: "ada" };

function start(database = new DatabaseSync(":memory:")) {
  const clock = { now: Date.parse("2026-11-20T12:00:00Z") };
  const { log, lines } = recordingLog();
  const { counters } = createStores({ redisUrl: undefined, database, log: silent }, NO_RIGHT);
  const usage = createUsage({ counters, log, now: () => clock.now });
  const note = (author: Pick<Author, "id">, reply: ReplyAddress, used: Partial<Amounts>) =>
    usage.note(randomUUID(), { author, reply, model: "m" }, used);
  return { usage, note, clock, counters, lines };
}

test("usage counts for the person, the channel and the workspace", async () => {
  const { usage, note } = start();
  await Promise.all([
    note(ada, general, { answers: 1, promptTokens: 10, completionTokens: 5, estimatedTokens: 15 }),
    note(ada, other, { pictures: 1, completionTokens: 7 }),
    note(ben, general, { answers: 1 }),
    note(ben, { platform: "test", channelId: "direct" }, { answers: 1 }),
  ]);
  expect(await usage.readMonth(ofAda)).toEqual({
    ...NOTHING,
    answers: 1,
    promptTokens: 10,
    completionTokens: 12,
    estimatedTokens: 15,
    pictures: 1,
  });
  expect(await usage.readMonth(general)).toMatchObject({ answers: 2, pictures: 0 });
  expect(await usage.readMonth({ platform: "test", workspaceId: "acme" })).toMatchObject({ answers: 2, pictures: 1 });
  expect(await usage.readMonth("everyone")).toMatchObject({ answers: 3, pictures: 1 });
});

test("the usage of a month means the current UTC month", async () => {
  const { usage, note, clock } = start();
  await note(ada, general, { answers: 1 });
  clock.now = Date.parse("2026-11-30T23:59:59Z");
  await note(ada, general, { answers: 1 });
  expect(await usage.readMonth(ofAda)).toEqual({ ...NOTHING, answers: 2 });
  clock.now = Date.parse("2026-12-01T00:00:00Z");
  expect(await usage.readMonth(ofAda)).toEqual(NOTHING);
});

test("a person's usage is exported day by day, and erased without that of others", async () => {
  const { usage, note, clock, counters } = start();
  await note(ada, general, { answers: 1 });
  await note(ben, general, { answers: 1 });
  clock.now -= 86_400_000;
  await note(ada, general, { pictures: 2 });
  expect(await usage.exportAuthor("test", "ada")).toEqual([
    { day: "2026-11-19", ...NOTHING, pictures: 2 },
    { day: "2026-11-20", ...NOTHING, answers: 1 },
  ]);
  await usage.forgetAuthor("test", "ada");
  expect(await usage.exportAuthor("test", "ada")).toEqual([]);
  expect(await usage.exportAuthor("test", "ben")).toHaveLength(1);
  expect((await counters.list("")).filter(([row]) => row.includes(":ada:"))).toEqual([]);
  // The sums stay, but they contain no one's name.
  expect(await usage.readMonth("everyone")).toMatchObject({ answers: 2, pictures: 2 });
  const table = await usage.readTable({ platform: "test", workspaceId: "acme" });
  expect(table).toMatchObject([
    { day: "2026-11-19", authorId: expect.stringMatching(/^@/), pictures: 2 },
    { day: "2026-11-20", authorId: expect.stringMatching(/^@/), answers: 1, model: "m" },
    { day: "2026-11-20", authorId: "ben", answers: 1, channelId: "general" },
  ]);
});

test("erasing a workspace's usage erases that of its people and channels, and nothing else", async () => {
  const { usage, note, counters } = start();
  await note(ada, general, { answers: 1 });
  await note(ben, { ...general, platform: "other" }, { answers: 1 });
  await note(ben, { platform: "test", channelId: "direct" }, { answers: 1 });
  await usage.eraseWorkspace("test", "acme");
  const rows = (await counters.list("")).map(([row]) => row);
  expect(rows.map((row) => row.replace(/:2026.*$/, ""))).toEqual([
    "all",
    "at:other:acme",
    "by:other:ben",
    "by:test:ben",
    "in:other:acme:general",
    "in:test:direct",
  ]);
});

test("usage in channels with the same id in two workspaces is counted separately", async () => {
  const { usage, note } = start();
  const elsewhere = { ...general, workspaceId: "other" };
  await note(ada, general, { answers: 1 });
  await note(ada, elsewhere, { answers: 2 });
  expect([(await usage.readMonth(general)).answers, (await usage.readMonth(elsewhere)).answers]).toEqual([1, 2]);
});

test("the store counts usage once if a process counts it again after a crash", async () => {
  const { usage } = start();
  const by = { author: ada, reply: general };
  await Promise.all([1, 2, 3].map(() => usage.note("one answer", by, { answers: 1, costs: { EUR: 5 } })));
  expect(await usage.readMonth(ofAda)).toEqual({ ...NOTHING, answers: 1, costs: { EUR: 5 } });
});

test("empty usage is not stored, and a turn succeeds even if the store fails", async () => {
  const database = new DatabaseSync(":memory:");
  const { note, counters, lines } = start(database);
  await note(ada, general, { answers: 0 });
  expect(await counters.list("")).toEqual([]);
  database.close();
  await note(ada, general, { answers: 1 });
  expect(lines.at(-1)?.["msg"]).toBe("usage could not be counted");
});

test.each([
  [{ ...NOTHING, answers: 1, promptTokens: 1, pictures: 1 }, "1 answer, 1 token, 1 image"],
  [
    { ...NOTHING, answers: 1, costs: { USD: 12_345_678_900, EUR: 1_234_000 }, unpriced: 2 },
    "1 answer, no tokens, no images, 12.35 USD and 0.001234 EUR (not counting 2 requests to models that have no price)",
  ],
  [
    { ...NOTHING, answers: 2, promptTokens: 1_000, completionTokens: 500, estimatedTokens: 300, pictures: 0 },
    "2 answers, 1,500 tokens (300 of them estimated), no images",
  ],
])("the bot describes usage in words: %j", (used, words) => {
  expect(describeAmounts(used)).toBe(words);
});
