import { DatabaseSync } from "node:sqlite";
import { estimateTokenCount } from "tokenx";
import { describe, expect, test } from "vitest";
import { ben, message } from "../../lab/support/events.ts";
import { recordingLog, silent } from "../../lab/support/log.ts";
import { textOf } from "../../src/gateway/chunks.ts";
import { createHistory } from "../../src/history/history.ts";
import type { HistoryEntry } from "../../src/history/record.ts";
import { createFiles } from "../../src/media/files.ts";
import { NO_RIGHT } from "../../src/port/right.ts";
import { createStores } from "../../src/store/keyv.ts";
import { StoreError } from "../../src/store/outage.ts";
import { createReadContext, estimateTokens } from "../../src/turn/context.ts";
import { isQuestionGone, storeQuestions, toEntry } from "../../src/turn/questions.ts";
import { newRecord } from "../../src/turn/record.ts";
import { answered } from "../support/history-contract.ts";

const signal = new AbortController().signal;

/** A file whose id is its text. */
async function* once(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text);
}

const told = { systemPrompt: "", channelMessages: 0 };

function open(talk: HistoryEntry[] = []) {
  const database = new DatabaseSync(":memory:");
  const stores = createStores({ redisUrl: undefined, database, log: silent }, NO_RIGHT);
  const history = createHistory({ ...stores, ttlMs: 60_000, log: silent, now: Date.now });
  const limits = { maxEntries: 10, maxTokens: 10_000 };
  const files = createFiles(async ({ id }) => once(id));
  const readChannelTalk = async () => talk;
  const readWith = (given: typeof history) =>
    createReadContext({ history: given, readChannelTalk, ...limits, files, log: silent });
  return { database, history, readWith, readContext: readWith(history) };
}

describe("the context of a turn", () => {
  test("a context ends with the question, even if the conversation continued before the answer", async () => {
    const { history, readContext } = open();
    const [question, later] = [message("question"), message("later")];
    for (const one of [question, later]) await history.append("test:a", toEntry(one));
    const { messages } = await readContext(newRecord([question], [question]), [question], told, signal);
    expect(messages.map(({ content }) => content)).toEqual(["question"]);
  });

  test("a context ends with the current question if only that could not be stored", async () => {
    const { history, readContext } = open();
    await history.append("test:a", toEntry(message("before")));
    const question = message("question", { author: ben });
    const { messages } = await readContext(newRecord([question], [question]), [question], told, signal);
    expect(messages.map(({ content }) => content)).toEqual(["Ada: before", "Ben: question"]);
  });

  test("a context has each question of a batch once, even if one could not be stored", async () => {
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

  test("a question that was first read as an earlier message appears in the context as a question", async () => {
    const { history, readContext } = open();
    await history.append("test:a", toEntry(message("before")));
    const question = message("question");
    await history.bring("test:a", [{ ...toEntry(question), isEarlier: true }], question.at);
    await history.append("test:a", toEntry(message("asked after it")));
    const { messages } = await readContext(newRecord([question], [question]), [question], told, signal);
    expect(messages.map(({ content }) => content)).toEqual(["before\n\nquestion"]);
  });

  test("a context has the question even if only its answer is stored", async () => {
    const { history, readContext } = open();
    await history.append("test:a", toEntry(message("before")));
    const question = message("question");
    const record = newRecord([question], [question]);
    await history.append("test:a", answered(record.id, "half an answer"));
    const { messages } = await readContext(record, [question], told, signal);
    expect(messages.map(({ content }) => content)).toEqual(["before\n\nquestion"]);
  });

  test("a context is the branch of the question, as far back as it goes", async () => {
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

  test("a context has the history even if the store was briefly silent", async () => {
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

  test("a context without a history consists of the current messages, and says so", async () => {
    const { database, readContext } = open();
    database.close();
    const question = message("question");
    const { messages, notices } = await readContext(newRecord([question], [question]), [question], told, signal);
    expect(messages.map(({ content }) => content)).toEqual(["question"]);
    expect(notices).toEqual([expect.stringContaining("is unavailable")]);
  });

  test("a context without a history and a current message is empty", async () => {
    const { database, readContext } = open();
    database.close();
    const question = message("question");
    await expect(readContext(newRecord([question], [question]), [], told, signal)).rejects.toThrow();
  });
});

describe("files in the context of a turn", () => {
  const attached = (name: string, text: string) => ({ platform: "test", id: text, name, sizeBytes: 1 });
  const long = (word: string) => `${word} `.repeat(9_000);

  /** The request for the last of these messages. They are sent one after the other. */
  async function ask(...said: Array<ReturnType<typeof message>>) {
    const { history, readContext } = open();
    for (const one of said) await history.append("test:a", toEntry(one));
    const question = said.at(-1);
    if (question === undefined) throw new Error("there is one");
    const context = await readContext(newRecord([question], [question]), [question], told, signal);
    const text = context.messages.map(textOf).join("\n");
    return { ...context, text, tokens: estimateTokenCount(text) };
  }

  test("files and text fit into the window together, by their real size", async () => {
    const { text, tokens, notices } = await ask(
      ...["one", "two", "three", "four"].map((word) => message(word, { attachments: [attached(word, long(word))] })),
    );
    expect(tokens).toBeLessThanOrEqual(10_000);
    expect(tokens).toBeGreaterThan(7_000);
    expect(text).toMatch(/four four .*; call read_file with "from": \d+ to read on\]/s);
    expect(text).toContain('(The file "one" is attached, but there is no room to show it. Use read_file to read it.)');
    expect(notices).toEqual(["_`four` is long, so I only read the beginning._"]);
  });

  test("files leave room for text, and text leaves room for files", async () => {
    const chat = Array.from({ length: 8 }, () => message(long("said").slice(0, 9_000)));
    const { text, tokens, notices } = await ask(
      ...chat,
      message("read", { attachments: [attached("a", long("file"))] }),
    );
    expect(tokens).toBeLessThanOrEqual(10_000);
    expect(text.match(/\bfile\b/g)?.length).toBeGreaterThan(2_300);
    expect(text.match(/\bsaid\b/g)?.length).toBeGreaterThan(5_000);
    expect(notices).toEqual([
      "_`a` is long, so I only read the beginning. Earlier messages of this conversation were left out._",
    ]);
  });

  test("a context sends the files of the four newest messages with files, and names older ones", async () => {
    const { text } = await ask(
      ...["a", "b", "c", "d", "e"].map((name) => message("", { attachments: [attached(name, `text of ${name}`)] })),
    );
    expect(text).toContain('(Attached here, but no longer shown: "a".)');
    expect(text.match(/text of \w/g)).toEqual(["text of b", "text of c", "text of d", "text of e"]);
  });

  test("a tool can read the files of the branch, without those of deleted messages", async () => {
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
  test("questions in reply to one message are stored after that message, one after another", async () => {
    const [one, two] = [message("one", { inReplyTo: "test:x" }), message("two", { inReplyTo: "test:x" })];
    const afters: Array<string | undefined> = [];
    const append = async (_: string, __: HistoryEntry, ___?: readonly string[], after?: string) =>
      void afters.push(after);
    await storeQuestions({ append }, [one, two, message("three")], recordingLog().log);
    expect(afters).toEqual(["test:x", one.messageId, two.messageId]);
  });

  test("questions that cannot be stored are logged without their words, and the turn continues", async () => {
    const { log, lines } = recordingLog();
    await storeQuestions({ append: () => Promise.reject(new Error("no disk")) }, [message("canary")], log);
    expect(lines).toMatchObject([{ level: 50 }]);
    expect(JSON.stringify(lines)).not.toContain("canary");
  });

  test("a question is not stored before an earlier one that the store rejected", async () => {
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
  });

  test("a turn's questions count as gone only when all of them are deleted", async () => {
    const messages = [message("one"), message("two")];
    const record = newRecord(messages, messages);
    const find = async (id: string) =>
      id === messages[1]?.messageId ? { conversationId: "test:a", entryId: id } : undefined;
    expect(await isQuestionGone({ find }, record)).toBe(false);
    expect(await isQuestionGone({ find: async () => undefined }, record)).toBe(true);
  });
});

test.each(["", "short", "lorem ipsum ".repeat(200), "漢字".repeat(2_000)])(
  "estimateTokens counts a text the same every time",
  (text) => {
    for (let time = 0; time < 2; time++) expect(estimateTokens(text)).toBe(estimateTokenCount(text));
  },
);
