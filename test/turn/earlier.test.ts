import { describe, expect, test } from "vitest";
import type { HistoryEntry } from "../../src/history/record.ts";
import type { EarlierMessage } from "../../src/port/events.ts";
import { createBringEarlier } from "../../src/turn/earlier.ts";
import { ben, message } from "../support/events.ts";
import { recordingLog } from "../support/log.ts";

const never = new AbortController().signal;

function setUp(said: EarlierMessage[] | Error, { isNew = true, maxTokens = 10_000 } = {}) {
  const begun: HistoryEntry[][] = [];
  let reads = 0;
  const { log, lines } = recordingLog();
  const bringEarlier = createBringEarlier({
    history: { isNew: async () => isNew, begin: async (_, entries) => void begun.push([...entries]) },
    adapterOf: () => ({
      async readEarlier() {
        reads += 1;
        if (said instanceof Error) throw said;
        return said;
      },
    }),
    maxTokens,
    log,
  });
  return { bringEarlier, begun, lines, reads: () => reads };
}

function said(text: string, messageId = `test:${text}`): EarlierMessage {
  return { messageId, author: ben, text, attachments: [], at: 5 };
}

describe("bringing in what was said earlier", () => {
  test("stores each message as its author's, marked", async () => {
    const { bringEarlier, begun } = setUp([said("Lunch?")]);
    await bringEarlier(message("Hello"), never);
    expect(begun).toEqual([
      [
        {
          id: "test:Lunch?",
          at: 5,
          author: { platform: "test", id: "ben", name: "Ben" },
          messages: [{ role: "user", content: "Lunch?" }],
          attachments: [],
          isEarlier: true,
        },
      ],
    ]);
  });

  test("leaves out the question itself, what is empty, and what comes twice", async () => {
    const question = message("Hello");
    const { bringEarlier, begun } = setUp([said("a"), said("a"), said(" "), said("Hello", question.messageId)]);
    await bringEarlier(question, never);
    expect(begun[0]?.map(({ id }) => id)).toEqual(["test:a"]);
  });

  test("keeps the newest, by number and by what they cost", async () => {
    const many = Array.from({ length: 80 }, (_, index) => said(String(index)));
    const short = setUp(many);
    await short.bringEarlier(message("Hello"), never);
    expect(short.begun[0]).toHaveLength(50);
    expect(short.begun[0]?.at(-1)?.id).toBe("test:79");
    const dear = setUp([said("x ".repeat(400)), said("y ".repeat(100))], { maxTokens: 800 });
    await dear.bringEarlier(message("Hello"), never);
    expect(dear.begun[0]).toHaveLength(1);
  });

  test("asks nobody where the conversation has begun, and nobody who cannot say", async () => {
    const { bringEarlier, begun, reads } = setUp([said("a")], { isNew: false });
    await bringEarlier(message("Hello"), never);
    expect([begun, reads()]).toEqual([[], 0]);
  });

  test("that fails is a warning, and no word of anybody is in it", async () => {
    const { bringEarlier, begun, lines } = setUp(new Error("missing_scope"));
    await bringEarlier(message("canary"), never);
    expect(begun).toEqual([]);
    expect(lines).toMatchObject([{ level: 40, msg: expect.stringContaining("before the bot was asked") }]);
    expect(JSON.stringify(lines)).not.toContain("canary");
  });

  test("ends with the work it is part of", async () => {
    const controller = new AbortController();
    const bringEarlier = createBringEarlier({
      history: { isNew: async () => true, begin: async () => {} },
      adapterOf: () => ({
        readEarlier: () => {
          controller.abort("shutdown");
          return new Promise(() => {});
        },
      }),
      maxTokens: 100,
      log: recordingLog().log,
    });
    await expect(bringEarlier(message("Hello"), controller.signal)).rejects.toBe("shutdown");
  });
});
