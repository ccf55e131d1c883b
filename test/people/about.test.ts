import { randomUUID } from "node:crypto";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { silent } from "../../lab/support/log.ts";
import { fakeServices } from "../../lab/support/services.ts";
import { createHistory } from "../../src/history/history.ts";
import { createReadAbout } from "../../src/people/about.ts";
import { NO_RIGHT } from "../../src/port/right.ts";
import type { Services } from "../../src/services/services.ts";
import { createSettings } from "../../src/settings/settings.ts";
import { createStores } from "../../src/store/keyv.ts";
import { createUsage } from "../../src/usage/usage.ts";
import { answered, said } from "../support/history-contract.ts";

const ada = { platform: "test", id: "ada", name: "Ada" };
const WHO = { platform: "test", author: { id: "ada" }, channelId: "direct" };

function start() {
  const database = new DatabaseSync(":memory:");
  const { open, inTurn, counters } = createStores({ redisUrl: undefined, database, log: silent }, NO_RIGHT);
  const common = { open, inTurn, ttlMs: 60_000, log: silent };
  const history = createHistory({ ...common, now: Date.now });
  const settings = createSettings({ ...common, now: Date.now });
  const usage = createUsage({ counters, log: silent, now: Date.now });
  return {
    history,
    settings,
    usage,
    readAbout: createReadAbout(fakeServices<Services>({ history, settings, usage, model: "usual" })),
  };
}

test("a person who never wrote sees the configured model, and that nothing is stored", async () => {
  const { readAbout } = start();
  expect(await readAbout(WHO)).toEqual({
    model: "usual",
    kept: { entries: 0, conversations: 0 },
    used: "no answers, no tokens, no images",
  });
});

test("a person sees their own settings, and how much data all conversations store about them", async () => {
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
  await settings.set({ platform: "test", channelId: "direct" }, "model", "chosen");
  await settings.set({ platform: "test", channelId: "direct" }, "options", { temperature: 0.2, format: "json" });
  await settings.set({ platform: "test", channelId: "direct" }, "persona", "A pirate.", "ada");
  await settings.set({ platform: "test", channelId: "elsewhere" }, "model", "other");
  expect(await readAbout(WHO)).toEqual({
    model: "chosen",
    persona: "A pirate.",
    answerOptions: "with temperature 0.2, as JSON",
    kept: { entries: 3, conversations: 2 },
    used: "2 answers, no tokens, no images",
  });
});
