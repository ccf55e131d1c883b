import { expect, test } from "vitest";
import { SinkError } from "../../src/port/errors.ts";
import type { ReplySink } from "../../src/port/sink.ts";
import type { TurnRecord } from "../../src/turn/record.ts";
import { removePosted } from "../../src/turn/take-back.ts";
import { silent } from "../support/log.ts";

test("a message that was found by posting again is kept before it is removed, so that no later try posts once more", async () => {
  const record = {
    id: "one",
    reply: { platform: "discord" },
    isPosting: true,
    posted: [] as string[],
    edition: 1,
  } as unknown as TurnRecord;
  const saved: Array<Pick<TurnRecord, "isPosting" | "posted">> = [];
  const sink = {
    post: async () => ({ id: "found" }),
    remove: async () => {
      throw new SinkError("rate-limited", "Too many calls.", { retryAfterMs: 30 });
    },
  } as unknown as ReplySink;

  const removed = removePosted(
    {
      adapterOf: () => ({ sink: () => sink }),
      records: {
        save: async ({ isPosting, posted }) => saved.push({ isPosting, posted: [...posted] }) > 0,
        eraseGiven: async () => undefined,
      },
      history: { remove: async () => true },
      log: silent,
    },
    record,
  );

  await expect(removed).rejects.toThrow("Too many calls.");
  expect(saved).toEqual([{ isPosting: false, posted: ["found"] }]);
});
