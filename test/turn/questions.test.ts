import { describe, expect, test } from "vitest";
import type { HistoryEntry } from "../../src/history/record.ts";
import { isQuestionGone, storeQuestions, toQuestion } from "../../src/turn/questions.ts";
import { newRecord } from "../../src/turn/record.ts";
import { action, message } from "../support/events.ts";
import { recordingLog } from "../support/log.ts";

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

  test("are gone when none of them is left", async () => {
    const messages = [message("one"), message("two")];
    const record = newRecord(messages, messages);
    const find = async (id: string) =>
      id === messages[1]?.messageId ? { conversationId: "test:a", entryId: id } : undefined;
    expect(await isQuestionGone({ find }, record)).toBe(false);
    expect(await isQuestionGone({ find: async () => undefined }, record)).toBe(true);
  });
});

describe("the question that lets an answer go on", () => {
  test("is the same for the same press, and continues the end of that answer", () => {
    const asked = message("Tell me");
    const record = { ...newRecord([asked], [asked]), posted: ["test:p1", "test:p2"] };
    const press = action("continue", record.id, { conversationId: "test:elsewhere" });
    const question = toQuestion(press, record);
    expect(question).toEqual(toQuestion(press, record));
    expect(question).toMatchObject({ inReplyTo: "test:p2", conversationId: "test:a", addressed: "bot" });
  });
});
