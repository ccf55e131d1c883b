import { DatabaseSync } from "node:sqlite";
import { estimateTokenCount } from "tokenx";
import { describe, expect, test } from "vitest";
import { FencedError, withFence } from "../../src/concurrency/fence.ts";
import { textOf } from "../../src/gateway/chunks.ts";
import { createHistory } from "../../src/history/history.ts";
import type { HistoryEntry } from "../../src/history/record.ts";
import { createFiles } from "../../src/media/files.ts";
import { createStores } from "../../src/store/keyv.ts";
import { StoreError } from "../../src/store/outage.ts";
import { createReadContext, isQuestionGone, storeQuestions, storeQuestionsLate } from "../../src/turn/context.ts";
import { toEarlierEntries, toEntry } from "../../src/turn/entries.ts";
import { newRecord } from "../../src/turn/record.ts";
import { ben, message } from "../support/events.ts";
import { answered } from "../support/history-contract.ts";
import { recordingLog, silent } from "../support/log.ts";

const signal = new AbortController().signal;

/** A file whose id is its text. */
async function* once(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text);
}

const told = { systemPrompt: "", channelMessages: 0 };

function open(talk: HistoryEntry[] = []) {
  const database = new DatabaseSync(":memory:");
  const stores = createStores({ redisUrl: undefined, database, log: silent });
  const history = createHistory({ ...stores, ttlMs: 60_000, log: silent, now: Date.now });
  const limits = { maxEntries: 10, maxTokens: 10_000 };
  const files = createFiles(async ({ id }) => once(id));
  const readChannelTalk = async () => talk;
  const readWith = (given: typeof history) =>
    createReadContext({ history: given, readChannelTalk, ...limits, files, log: silent });
  return { database, history, readWith, readContext: readWith(history) };
}

describe("the context of a turn", () => {
  test("ends with the question, also when the conversation went on before it had an answer", async () => {
    const { history, readContext } = open();
    const [question, later] = [message("question"), message("later")];
    for (const one of [question, later]) await history.append("test:a", toEntry(one));
    const { messages } = await readContext(newRecord([question], [question]), [question], told, signal);
    expect(messages.map(({ content }) => content)).toEqual(["question"]);
  });

  test("ends with the question at hand when only that could not be stored", async () => {
    const { history, readContext } = open();
    await history.append("test:a", toEntry(message("before")));
    const question = message("question", { author: ben });
    const { messages } = await readContext(newRecord([question], [question]), [question], told, signal);
    expect(messages.map(({ content }) => content)).toEqual(["Ada: before", "Ben: question"]);
  });

  test("has each of the messages that are answered together once, also when one of them could not be stored", async () => {
    const { history, readContext } = open();
    await history.append("test:a", toEntry(message("before")));
    const messages = [message("one"), message("two"), message("three")];
    for (const missing of messages) {
      for (const one of messages) await history.remove(one.messageId);
      for (const one of messages) if (one !== missing) await history.append("test:a", toEntry(one));
      const { messages: asked } = await readContext(newRecord(messages, messages), messages, told, signal);
      expect(asked.map(({ content }) => content)).toEqual(["before\n\none\n\ntwo\n\nthree"]);
    }
  });

  test("has the question as one also when it could not be stored as such, and was taken up before as what others said", async () => {
    const { history, readContext } = open();
    await history.append("test:a", toEntry(message("before")));
    const question = message("question");
    await history.bring("test:a", toEarlierEntries([question], question.reply), question.at);
    await history.append("test:a", toEntry(message("asked after it")));
    const { messages } = await readContext(newRecord([question], [question]), [question], told, signal);
    expect(messages.map(({ content }) => content)).toEqual(["before\n\nquestion"]);
  });

  test("has the question also when only the answer to it is stored", async () => {
    const { history, readContext } = open();
    await history.append("test:a", toEntry(message("before")));
    const question = message("question");
    const record = newRecord([question], [question]);
    await history.append("test:a", answered(record.id, "half an answer"));
    const { messages } = await readContext(record, [question], told, signal);
    expect(messages.map(({ content }) => content)).toEqual(["before\n\nquestion"]);
  });

  test("is the branch of the question, and where it goes on further back", async () => {
    const { history, readContext } = open();
    const long = Array.from({ length: 15 }, (_, index) => message(`m${index}`));
    for (const [index, one] of long.entries()) {
      await history.append("test:a", toEntry(one), [], long[index - 1]?.messageId);
      await history.append("test:a", toEntry(message("another branch")), [], long[0]?.messageId);
    }
    const question = long.at(-1);
    if (question === undefined) throw new Error("there is one");
    const { messages, notices, oldestShownId } = await readContext(
      newRecord([question], [question]),
      [question],
      told,
      signal,
    );
    expect(JSON.stringify(messages)).not.toContain("another");
    expect(oldestShownId).toBe(long[5]?.messageId);
    expect(notices).toEqual([expect.stringContaining("left out")]);
  });

  test("knows what was said before also where the store was silent for a moment", async () => {
    const { history, readWith } = open();
    await history.append("test:a", toEntry(message("before")));
    const question = message("question");
    await history.append("test:a", toEntry(question));
    const failures = [new StoreError("Redis did not answer.")];
    const read: typeof history.read = async (...asked) => {
      const failure = failures.shift();
      if (failure !== undefined) throw failure;
      return history.read(...asked);
    };
    const readContext = readWith({ ...history, read });
    const { messages, notices } = await readContext(newRecord([question], [question]), [question], told, signal);
    expect(messages.map(({ content }) => content)).toEqual(["before\n\nquestion"]);
    expect(notices).toEqual([]);
  });

  test("without a history is the messages at hand, and says so", async () => {
    const { database, readContext } = open();
    database.close();
    const question = message("question");
    const { messages, notices } = await readContext(newRecord([question], [question]), [question], told, signal);
    expect(messages.map(({ content }) => content)).toEqual(["question"]);
    expect(notices).toEqual([expect.stringContaining("out of reach")]);
  });

  test("without a history and without a message at hand is none", async () => {
    const { database, readContext } = open();
    database.close();
    const question = message("question");
    await expect(readContext(newRecord([question], [question]), [], told, signal)).rejects.toThrow();
  });
});

describe("files in the context of a turn", () => {
  const attached = (name: string, text: string) => ({ platform: "test", id: text, name, sizeBytes: 1 });
  const long = (word: string) => `${word} `.repeat(9_000);

  /** The request for the last of these messages, said one after the other. */
  async function ask(...said: Array<ReturnType<typeof message>>) {
    const { history, readContext } = open();
    for (const one of said) await history.append("test:a", toEntry(one));
    const question = said.at(-1);
    if (question === undefined) throw new Error("there is one");
    const context = await readContext(newRecord([question], [question]), [question], told, signal);
    const text = context.messages.map(textOf).join("\n");
    return { ...context, text, tokens: estimateTokenCount(text) };
  }

  test("fit into the window together with what people say, by what is really sent", async () => {
    const { text, tokens, notices } = await ask(
      ...["one", "two", "three", "four"].map((word) => message(word, { attachments: [attached(word, long(word))] })),
    );
    expect(tokens).toBeLessThanOrEqual(10_000);
    expect(tokens).toBeGreaterThan(7_000);
    expect(text).toMatch(/four four .*; read_file reads on from \d+\]/s);
    expect(text).toContain('(The file "one" is attached, and there is no room to show it; read_file reads it.)');
    expect(notices).toEqual(["_`four` is long: only its beginning was read._"]);
  });

  test("leave room for what people say, and what people say for them", async () => {
    const chat = Array.from({ length: 8 }, () => message(long("said").slice(0, 9_000)));
    const { text, tokens, notices } = await ask(
      ...chat,
      message("read", { attachments: [attached("a", long("file"))] }),
    );
    expect(tokens).toBeLessThanOrEqual(10_000);
    expect(text.match(/\bfile\b/g)?.length).toBeGreaterThan(2_300);
    expect(text.match(/\bsaid\b/g)?.length).toBeGreaterThan(5_000);
    expect(notices).toEqual([
      "_`a` is long: only its beginning was read. Earlier messages of this conversation were left out._",
    ]);
  });

  test("are those of the four newest messages that have any; older ones are named", async () => {
    const { text } = await ask(
      ...["a", "b", "c", "d", "e"].map((name) => message("", { attachments: [attached(name, `text of ${name}`)] })),
    );
    expect(text).toContain('(Attached here, and not shown any more: "a".)');
    expect(text.match(/text of \w/g)).toEqual(["text of b", "text of c", "text of d", "text of e"]);
  });

  test("that a tool may read are those of the branch, without those of deleted messages", async () => {
    const { history, readContext } = open();
    const root = message("root", { attachments: [attached("root", "1")] });
    const other = message("other", { attachments: [attached("other", "2")], inReplyTo: root.messageId });
    const gone = message("gone", { attachments: [attached("gone", "3")], inReplyTo: root.messageId });
    const question = message("question", { attachments: [attached("own", "4")], inReplyTo: gone.messageId });
    for (const one of [root, other, gone, question]) await history.append("test:a", toEntry(one), [], one.inReplyTo);
    await history.remove(gone.messageId);
    const { files } = await readContext(newRecord([question], [question]), [question], told, signal);
    expect(files.map(({ name }) => name)).toEqual(["root", "own"]);
  });
});

describe("the questions of a turn", () => {
  /** For each message that is stored, the one it continues. */
  async function storedAfter(...messages: Array<ReturnType<typeof message>>): Promise<Array<string | undefined>> {
    const afters: Array<string | undefined> = [];
    const append = async (_: string, __: HistoryEntry, ___?: readonly string[], after?: string) => {
      afters.push(after);
    };
    await storeQuestions({ append }, messages, recordingLog().log);
    return afters;
  }

  test("said to no message continue none", async () => {
    expect(await storedAfter(message("one"), message("two"))).toEqual([undefined, undefined]);
  });

  test("said to a message continue it together, each after the one before", async () => {
    const [one, two] = [message("one", { inReplyTo: "test:x" }), message("two", { inReplyTo: "test:x" })];
    expect(await storedAfter(one, two, message("three"))).toEqual(["test:x", one.messageId, two.messageId]);
  });

  test("that cannot be stored are said in the log, without their words, and the turn goes on", async () => {
    const { log, lines } = recordingLog();
    await storeQuestions({ append: () => Promise.reject(new Error("no disk")) }, [message("canary")], log);
    expect(lines).toMatchObject([{ level: 50 }]);
    expect(JSON.stringify(lines)).not.toContain("canary");
  });

  test("are not stored before an earlier one for which the store was away", async () => {
    const [one, two] = [message("one"), message("two")];
    const stored: string[] = [];
    const failures: Error[] = [new StoreError("away")];
    const append = async (_: string, { id }: HistoryEntry) => {
      const failure = failures.shift();
      if (failure !== undefined) throw failure;
      stored.push(id);
    };
    expect(await storeQuestions({ append }, [one, two], silent)).toBe(false);
    expect(stored).toEqual([]);
    await storeQuestionsLate({ append }, [one, two], silent, signal);
    expect(stored).toEqual([one.messageId, two.messageId]);
  });

  test("are stored late once a store that other processes share is back, and until then only where it may come back", async () => {
    const fence = { key: "lane", value: "mine", check: async () => {} };
    const stored: string[] = [];
    const failures: Error[] = [new StoreError("away"), new StoreError("still away")];
    const append = async (_: string, { id }: HistoryEntry) => {
      const failure = failures.shift();
      if (failure !== undefined) throw failure;
      stored.push(id);
    };
    const messages = [message("one"), message("two")];
    await withFence(fence, () => storeQuestionsLate({ append }, messages, silent, signal));
    expect(stored).toEqual(messages.map(({ messageId }) => messageId));

    failures.push(new FencedError("another process does it"));
    await withFence(fence, () => storeQuestionsLate({ append }, messages, silent, signal));
    expect(stored).toHaveLength(2);
  });

  test("are waited for no longer than a signal says", async () => {
    const fence = { key: "lane", value: "mine", check: async () => {} };
    const ended = new AbortController();
    const append = async () => {
      ended.abort("lost");
      throw new StoreError("away");
    };
    await withFence(fence, () => storeQuestionsLate({ append }, [message("one")], silent, ended.signal));
  });

  test("are gone when none of them is left", async () => {
    const messages = [message("one"), message("two")];
    const record = newRecord(messages, messages);
    const find = async (id: string) =>
      id === messages[1]?.messageId ? { conversationId: "test:a", entryId: id } : undefined;
    expect(await isQuestionGone({ find }, record)).toBe(false);
    expect(await isQuestionGone({ find: async () => undefined }, record)).toBe(true);
  });
});
