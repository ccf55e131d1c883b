import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { createReadContext, toEntry } from "../src/context.ts";
import { createHistory } from "../src/history.ts";
import { createStores } from "../src/store/keyv.ts";
import { newRecord } from "../src/turn-record.ts";
import { message } from "./support/events.ts";
import { fakePlatform } from "./support/fake-platform.ts";
import { silent } from "./support/log.ts";

const signal = new AbortController().signal;

function open() {
  const database = new DatabaseSync(":memory:");
  const stores = createStores({ redisUrl: undefined, database, log: silent });
  const history = createHistory({ open: stores.open, ttlMs: 60_000, log: silent, now: Date.now });
  const limits = { maxEntries: 10, maxTokens: 10_000 };
  const readContext = createReadContext({ history, ...limits, adapterOf: () => fakePlatform().adapter, log: silent });
  return { database, history, readContext };
}

describe("the context of a turn", () => {
  test("ends with the question, also when the conversation went on before it had an answer", async () => {
    const { history, readContext } = open();
    const [question, later] = [message("question"), message("later")];
    for (const one of [question, later]) await history.append("test:a", toEntry(one));
    const { messages } = await readContext(newRecord([question], [question]), [question], "", signal);
    expect(messages.map(({ content }) => content)).toEqual(["question"]);
  });

  test("without a history is the messages at hand, and says so", async () => {
    const { database, readContext } = open();
    database.close();
    const question = message("question");
    const { messages, notices } = await readContext(newRecord([question], [question]), [question], "", signal);
    expect(messages.map(({ content }) => content)).toEqual(["question"]);
    expect(notices).toEqual([expect.stringContaining("out of reach")]);
  });

  test("without a history and without a message at hand is none", async () => {
    const { database, readContext } = open();
    database.close();
    const question = message("question");
    await expect(readContext(newRecord([question], [question]), [], "", signal)).rejects.toThrow();
  });
});
