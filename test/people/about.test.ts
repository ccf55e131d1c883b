import { randomUUID } from "node:crypto";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { createHistory } from "../../src/history/history.ts";
import { createReadAbout } from "../../src/people/about.ts";
import { createSettings } from "../../src/settings/settings.ts";
import { createStores } from "../../src/store/keyv.ts";
import { createUsage } from "../../src/usage/usage.ts";
import { answered, said } from "../support/history-contract.ts";
import { silent } from "../support/log.ts";

const ada = { platform: "test", id: "ada", name: "Ada" };
const WHO = { platform: "test", author: { id: "ada" }, channelId: "direct" };

function start() {
  const database = new DatabaseSync(":memory:");
  const { open, inTurn, counters } = createStores({ redisUrl: undefined, database, log: silent });
  const common = { open, inTurn, ttlMs: 60_000, log: silent };
  const history = createHistory({ ...common, now: Date.now });
  const settings = createSettings(common);
  const usage = createUsage({ open, counters, log: silent, now: Date.now });
  return { history, settings, usage, readAbout: createReadAbout({ history, settings, usage, model: "usual" }) };
}

test("a person who never wrote is told of the configured model, and of nothing kept", async () => {
  const { readAbout } = start();
  expect(await readAbout(WHO)).toEqual({
    model: "usual",
    kept: { entries: 0, conversations: 0 },
    used: "no answers, no tokens, no pictures",
  });
});

test("a person is told of their own settings, and how much of theirs is kept in all conversations", async () => {
  const { history, settings, usage, readAbout } = start();
  await usage.note(
    randomUUID(),
    { author: { id: "ada" }, reply: { platform: "test", channelId: "elsewhere" } },
    { answers: 2 },
  );
  await usage.note(
    randomUUID(),
    { author: { id: "ben" }, reply: { platform: "test", channelId: "direct" } },
    { answers: 1 },
  );
  await history.append("test:a", said("1", "hello", ada));
  await history.append("test:a", answered("2", "hello yourself", ada));
  await history.append("test:b", said("3", "and here", ada));
  await history.append("test:b", said("4", "somebody else", { ...ada, id: "ben" }));
  await settings.setModel({ platform: "test", channelId: "direct" }, "chosen");
  await settings.setOptions({ platform: "test", channelId: "direct" }, { temperature: 0.2, format: "json" });
  await settings.setPersona({ platform: "test", channelId: "direct" }, "A pirate.", "ada");
  await settings.setModel({ platform: "test", channelId: "elsewhere" }, "other");
  expect(await readAbout(WHO)).toEqual({
    model: "chosen",
    persona: "A pirate.",
    answerOptions: "with temperature 0.2, as JSON",
    kept: { entries: 3, conversations: 2 },
    used: "2 answers, no tokens, no pictures",
  });
});

test("what is kept under a former id counts where it is theirs", async () => {
  const { history, usage, readAbout } = start();
  const old = { ...ada, id: "old" };
  await usage.note(
    randomUUID(),
    { author: { id: "old" }, reply: { platform: "test", channelId: "elsewhere" } },
    { answers: 2 },
  );
  await history.append("test:one:a", said("1", "hello", old));
  await history.append("test:other:a", said("2", "hello", old));
  const author = (former: { id: string; within?: string }) => ({ ...WHO, author: { id: "ada", former } });
  expect(await readAbout(author({ id: "old" }))).toMatchObject({
    kept: { entries: 2 },
    used: "2 answers, no tokens, no pictures",
  });
  expect(await readAbout(author({ id: "old", within: "test:one:" }))).toMatchObject({
    kept: { entries: 1, conversations: 1 },
    used: "no answers, no tokens, no pictures",
  });
});
