import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import type { ReplyAddress } from "../../src/port/events.ts";
import { createStores } from "../../src/store/keyv.ts";
import { createUsage, describeAmounts } from "../../src/usage/usage.ts";
import { startEngine } from "../support/engine.ts";
import { ada, ben, message } from "../support/events.ts";
import { recordingLog, silent } from "../support/log.ts";

const NOTHING = { answers: 0, promptTokens: 0, completionTokens: 0, estimatedTokens: 0, pictures: 0 };
const general: ReplyAddress = { platform: "test", channelId: "general", workspaceId: "acme" };
const other: ReplyAddress = { platform: "test", channelId: "other", workspaceId: "acme" };
const ofAda = { platform: "test", authorId: "ada" };

function start(database = new DatabaseSync(":memory:"), severalWorkspaces: ReadonlySet<string> = new Set()) {
  const clock = { now: Date.parse("2026-11-20T12:00:00Z") };
  const { log, lines } = recordingLog();
  const { open } = createStores({ redisUrl: undefined, database, log: silent });
  const usage = createUsage({ open, ttlMs: 60_000, log, now: () => clock.now, severalWorkspaces });
  return { usage, clock, open, lines };
}

test("what is used counts for the person, the channel and the workspace", async () => {
  const { usage } = start();
  await Promise.all([
    usage.note(ada, general, { answers: 1, promptTokens: 10, completionTokens: 5, estimatedTokens: 15 }),
    usage.note(ada, other, { pictures: 1, completionTokens: 7 }),
    usage.note(ben, general, { answers: 1 }),
    usage.note(ben, { platform: "test", channelId: "direct" }, { answers: 1 }),
  ]);
  expect(await usage.readMonth(ofAda)).toEqual({
    answers: 1,
    promptTokens: 10,
    completionTokens: 12,
    estimatedTokens: 15,
    pictures: 1,
  });
  expect(await usage.readMonth(general)).toMatchObject({ answers: 2, pictures: 0 });
  expect(await usage.readMonth({ platform: "test", workspaceId: "acme" })).toMatchObject({ answers: 2, pictures: 1 });
});

test("a month is the one that it is", async () => {
  const { usage, clock } = start();
  await usage.note(ada, general, { answers: 1 });
  clock.now = Date.parse("2026-11-30T23:59:59Z");
  await usage.note(ada, general, { answers: 1 });
  expect(await usage.readMonth(ofAda)).toEqual({ ...NOTHING, answers: 2 });
  clock.now = Date.parse("2026-12-01T00:00:00Z");
  expect(await usage.readMonth(ofAda)).toEqual(NOTHING);
});

test("a person gets it day by day, and has it erased without that of others", async () => {
  const { usage, clock, open } = start();
  await usage.note(ada, general, { answers: 1 });
  await usage.note(ben, general, { answers: 1 });
  clock.now -= 86_400_000;
  await usage.note(ada, general, { pictures: 2 });
  expect(await usage.exportAuthor("test", "ada")).toEqual([
    { day: "2026-11-19", ...NOTHING, pictures: 2 },
    { day: "2026-11-20", ...NOTHING, answers: 1 },
  ]);
  await usage.forgetAuthor("test", "ada");
  expect(await usage.exportAuthor("test", "ada")).toEqual([]);
  expect(await usage.exportAuthor("test", "ben")).toHaveLength(1);
  const keys = (await Array.fromAsync(open("usage").iterator?.(undefined) ?? [])).map(([key]) => String(key));
  expect(keys.filter((key) => key.includes("ada"))).toEqual([]);
});

test("a workspace has everything erased that was used in it, and nothing else", async () => {
  const { usage, open } = start();
  await usage.note(ada, general, { answers: 1 });
  await usage.note(ben, { ...general, platform: "other" }, { answers: 1 });
  await usage.note(ben, { platform: "test", channelId: "direct" }, { answers: 1 });
  await usage.eraseWorkspace("test", "acme");
  const keys = (await Array.fromAsync(open("usage").iterator?.(undefined) ?? [])).map(([key]) => String(key));
  expect(keys.map((key) => key.replace(/:[^:]*$/, "")).toSorted()).toEqual([
    "at:other:acme",
    "by:other:ben",
    "by:test:ben",
    "in:other:acme:general",
    "in:test:direct",
  ]);
});

test("channels with one id in two workspaces are counted apart", async () => {
  const { usage } = start();
  const elsewhere = { ...general, workspaceId: "other" };
  await usage.note(ada, general, { answers: 1 });
  await usage.note(ada, elsewhere, { answers: 2 });
  expect([(await usage.readMonth(general)).answers, (await usage.readMonth(elsewhere)).answers]).toEqual([1, 2]);
});

test.each([
  ["counts for the one workspace there is", new Set<string>(), 3],
  ["counts for none of several", new Set(["test"]), 1],
])("what a channel used before workspaces were told apart %s", async (_, severalWorkspaces, answers) => {
  const { usage } = start(undefined, severalWorkspaces);
  await usage.note(ada, { platform: "test", channelId: "general" }, { answers: 2 });
  await usage.note(ada, general, { answers: 1 });
  expect(await usage.readMonth(general)).toMatchObject({ answers });
});

test("nothing is stored where nothing was used, and nothing fails with the store", async () => {
  const database = new DatabaseSync(":memory:");
  const { usage, open, lines } = start(database);
  await usage.note(ada, general, { answers: 0 });
  expect(await Array.fromAsync(open("usage").iterator?.(undefined) ?? [])).toEqual([]);
  database.close();
  await usage.note(ada, general, { answers: 1 });
  expect(lines.at(-1)?.["msg"]).toBe("what was used could not be counted");
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
    { answers: 2, promptTokens: 1_000, completionTokens: 500, estimatedTokens: 300, pictures: 0 },
    "2 answers, 1,500 tokens (300 of them estimated), no pictures",
  ],
])("puts amounts in words: %j", (used, words) => {
  expect(describeAmounts(used)).toBe(words);
});
