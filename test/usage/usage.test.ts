import { randomUUID } from "node:crypto";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import type { Author, ReplyAddress } from "../../src/port/events.ts";
import { createStores } from "../../src/store/keyv.ts";
import { type Amounts, createUsage, describeAmounts, NOTHING } from "../../src/usage/usage.ts";
import { startEngine } from "../support/engine.ts";
import { ada, ben, message } from "../support/events.ts";
import { recordingLog, silent } from "../support/log.ts";

const general: ReplyAddress = { platform: "test", channelId: "general", workspaceId: "acme" };
const other: ReplyAddress = { platform: "test", channelId: "other", workspaceId: "acme" };
const ofAda = { platform: "test", authorId: "ada" };

function start(database = new DatabaseSync(":memory:"), severalWorkspaces: ReadonlySet<string> = new Set()) {
  const clock = { now: Date.parse("2026-11-20T12:00:00Z") };
  const { log, lines } = recordingLog();
  const { open, counters } = createStores({ redisUrl: undefined, database, log: silent });
  const usage = createUsage({ open, counters, log, now: () => clock.now, severalWorkspaces });
  const note = (author: Pick<Author, "id">, reply: ReplyAddress, used: Partial<Amounts>) =>
    usage.note(randomUUID(), { author, reply, model: "m" }, used);
  return { usage, note, clock, open, counters, lines };
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

test("the month that is read is the current one in UTC", async () => {
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
  expect((await counters.list("")).filter(([row]) => row.includes("ada"))).toEqual([]);
  // The sums stay, and name nobody.
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

test("the usage of channels with one id in two workspaces is counted apart", async () => {
  const { usage, note } = start();
  const elsewhere = { ...general, workspaceId: "other" };
  await note(ada, general, { answers: 1 });
  await note(ada, elsewhere, { answers: 2 });
  expect([(await usage.readMonth(general)).answers, (await usage.readMonth(elsewhere)).answers]).toEqual([1, 2]);
});

const BEFORE = { v: 1, answers: 2, promptTokens: 3, completionTokens: 0, estimatedTokens: 0, pictures: 0 };

test.each([
  ["counts for the one workspace there is", new Set<string>(), 3],
  ["counts for none of several", new Set(["test"]), 1],
])("the usage of a channel from before workspaces were told apart %s", async (_, severalWorkspaces, answers) => {
  const { usage, note, open } = start(undefined, severalWorkspaces);
  await open("usage").set("in:test:general:2026-11-20", BEFORE);
  await note(ada, general, { answers: 1 });
  expect(await usage.readMonth(general)).toMatchObject({ answers });
});

test("usage stored by versions that wrote whole sums is counted, exported and erased", async () => {
  const { usage, note, open } = start();
  for (const day of ["19", "20"])
    await open("usage").set(`by:test:ada:2026-11-${day}`, { ...BEFORE, workspaceId: "w" });
  await note(ada, general, { answers: 1 });
  expect(await usage.readMonth(ofAda)).toEqual({ ...NOTHING, answers: 5, promptTokens: 6 });
  expect(await usage.exportAuthor("test", "ada")).toMatchObject([{ answers: 2 }, { answers: 3, promptTokens: 3 }]);
  await usage.forgetAuthor("test", "ada");
  expect(await usage.readMonth(ofAda)).toEqual(NOTHING);
});

test("usage that is counted again after a crash counts once", async () => {
  const { usage } = start();
  const by = { author: ada, reply: general };
  await Promise.all([1, 2, 3].map(() => usage.note("one answer", by, { answers: 1, costs: { EUR: 5 } })));
  expect(await usage.readMonth(ofAda)).toEqual({ ...NOTHING, answers: 1, costs: { EUR: 5 } });
});

test("usage of nothing is not stored, and a failing store fails no turn", async () => {
  const database = new DatabaseSync(":memory:");
  const { note, counters, lines } = start(database);
  await note(ada, general, { answers: 0 });
  expect(await counters.list("")).toEqual([]);
  database.close();
  await note(ada, general, { answers: 1 });
  expect(lines.at(-1)?.["msg"]).toBe("usage could not be counted");
});

test("an answer counts with its tokens, estimated where the gateway did not say", async () => {
  const { accept, idle, usage } = startEngine({ scripts: [["Hello there."]] });
  await accept(message("hello"));
  await idle();
  const used = await usage.readMonth(ofAda);
  expect(used).toMatchObject({ answers: 1, pictures: 0 });
  expect(used.completionTokens).toBeGreaterThan(0);
  expect(used.estimatedTokens).toBe(used.promptTokens + used.completionTokens);
});

test.each([
  [{ ...NOTHING, answers: 1, promptTokens: 1, pictures: 1 }, "1 answer, 1 token, 1 picture"],
  [
    { ...NOTHING, answers: 1, costs: { USD: 12_345_678_900, EUR: 1_234_000 }, unpriced: 2 },
    "1 answer, no tokens, no pictures, 12.35 USD and 0.001234 EUR (without 2 requests to models that have no price)",
  ],
  [
    { ...NOTHING, answers: 2, promptTokens: 1_000, completionTokens: 500, estimatedTokens: 300, pictures: 0 },
    "2 answers, 1,500 tokens (300 of them estimated), no pictures",
  ],
])("puts amounts in words: %j", (used, words) => {
  expect(describeAmounts(used)).toBe(words);
});
