import { describe, expect, test } from "vitest";
import { action, ben, command, deleted, edited, message } from "../../lab/support/events.ts";
import type { InboundEvent } from "../../src/port/events.ts";
import { toTurnId } from "../../src/port/ids.ts";
import { foldBatch, takeBatch } from "../../src/turn/questions.ts";

describe("the batch of questions for one turn", () => {
  test("takeBatch includes a Stop for the batch's turn, and no other Stop", () => {
    const question = message("one");
    const stop = action("stop", toTurnId(question.key));
    const retry = action("retry", "turn");
    const stopRetry = action("stop", "turn");
    expect(takeBatch([question, stopRetry, stop])).toEqual([question, stop]);
    expect(takeBatch([retry, stop, stopRetry])).toEqual([retry, stopRetry]);
  });

  test("takeBatch ends at another author's message, so that the conversation keeps its order", () => {
    const [first, other, second] = [message("one"), message("hello", { author: ben }), message("two")];
    expect(takeBatch([first, other, second])).toEqual([first]);
  });

  test("takeBatch takes a question that gets its own answer alone, and nothing after it", () => {
    const [plain, own] = [message("one"), message("two", { isAnsweredAlone: true })];
    expect(takeBatch([plain, own, message("three")])).toEqual([plain]);
    expect(takeBatch([own, message("three"), edited(own, "zwei")])).toEqual([
      own,
      expect.objectContaining({ text: "zwei" }),
    ]);
  });

  test("takeBatch ends at a command and at a button", () => {
    const [first, second] = [message("one"), message("two")];
    expect(takeBatch([first, command("help"), second])).toEqual([first]);
    expect(takeBatch([first, action("retry", "t"), second])).toEqual([first]);
  });

  test("takeBatch includes the edits and deletions of its messages, even if other events come before them", () => {
    const [first, other] = [message("one"), message("hello", { author: ben })];
    const [change, removal, foreign] = [edited(first, "uno"), deleted(first), edited(other, "hallo")];
    expect(takeBatch([first, other, change, foreign, removal])).toEqual([first, change, removal]);
  });

  test("takeBatch takes any other event alone", () => {
    const waiting = [command("help"), message("one")];
    expect(takeBatch(waiting)).toEqual(waiting.slice(0, 1));
  });

  test("takeBatch does not mix messages to the bot with messages to other people", () => {
    const waiting = [message("one"), message("two", { addressed: "other" })];
    expect(takeBatch(waiting)).toEqual(waiting.slice(0, 1));
  });

  test("takeBatch keeps the branches of a conversation apart", () => {
    const first = message("one", { inReplyTo: "test:x" });
    const same = message("two", { inReplyTo: "test:x" });
    const next = message("three", { inReplyTo: same.messageId });
    const plain = message("four");
    expect(takeBatch([first, same, next, plain])).toEqual([first, same, next, plain]);
    const back = message("five", { inReplyTo: first.messageId });
    expect(takeBatch([first, same, back, next])).toEqual([first, same]);
    expect(takeBatch([plain, same])).toEqual([plain]);
    expect(takeBatch([first, message("six", { inReplyTo: "test:y" })])).toEqual([first]);
  });

  test("takeBatch splits a flood into several turns", () => {
    const waiting = Array.from({ length: 50 }, (_, index) => message(String(index)));
    const taken = takeBatch(waiting);
    expect(taken).toEqual(waiting.slice(0, taken.length));
    expect(taken.length).toBeLessThan(waiting.length);
  });
});

describe("the questions of a batch after their changes", () => {
  test("foldBatch returns the messages after their edits", () => {
    const [first, second] = [message("one"), message("two")];
    expect(foldBatch([first, second, edited(first, "uno"), edited(first, "eins")]).map(({ text }) => text)).toEqual([
      "eins",
      "two",
    ]);
  });

  test("an edit can direct a message to the bot, but never away from it", () => {
    const open = message("one", { addressed: "open" });
    const asked = { ...edited(open, "bot, one"), addressed: "bot" as const };
    expect(foldBatch([open, asked, edited(open, "bot, two")])).toMatchObject([{ text: "bot, two", addressed: "bot" }]);
  });

  test("foldBatch leaves out deleted messages, even if an edit comes after the deletion", () => {
    const [first, second] = [message("one"), message("two")];
    expect(foldBatch([first, second, deleted(first), edited(first, "uno")])).toEqual([second]);
  });
});

test("the bot handles an image request with the Stop that waits behind it, and without later presses", () => {
  const drawn = (event: InboundEvent, kind: "drawing" | "errand"): InboundEvent => {
    return { ...event, lane: { id: "drawing:job", kind, workId: "job" } };
  };
  const asked = drawn(command("imagine", "a fox"), "drawing");
  const stop = drawn(action("stop", "job.0"), "errand");
  const retry = drawn(action("retry", "job.0"), "drawing");
  expect(takeBatch([asked, stop, retry, stop])).toEqual([asked, stop]);
  expect(takeBatch([retry, stop])).toEqual([retry, stop]);
  expect(takeBatch([stop, retry])).toEqual([stop]);
});
