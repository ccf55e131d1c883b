import { describe, expect, test } from "vitest";
import { toTurnId } from "../../src/port/ids.ts";
import { foldBatch, splitBatch, takeBatch } from "../../src/turn/batch.ts";
import { action, ben, command, deleted, edited, message } from "../support/events.ts";

describe("takeBatch", () => {
  test("takes together what one author wrote while waiting", () => {
    const waiting = [message("one"), message("two"), message("three")];
    expect(takeBatch(waiting)).toEqual(waiting);
  });

  test("takes along a stop of the turn it begins, and no other", () => {
    const question = message("one");
    const stop = action("stop", toTurnId(question.key));
    const retry = action("retry", "turn");
    const stopRetry = action("stop", "turn");
    expect(takeBatch([question, stopRetry, stop])).toEqual([question, stop]);
    expect(takeBatch([retry, stop, stopRetry])).toEqual([retry, stopRetry]);
  });

  test("ends where somebody else speaks, so that the order of the conversation holds", () => {
    const [first, other, second] = [message("one"), message("hello", { author: ben }), message("two")];
    expect(takeBatch([first, other, second])).toEqual([first]);
  });

  test("takes a question that has an answer of its own to come alone, and nothing past it", () => {
    const [plain, own] = [message("one"), message("two", { isAnsweredAlone: true })];
    expect(takeBatch([plain, own, message("three")])).toEqual([plain]);
    expect(takeBatch([own, message("three"), edited(own, "zwei")])).toEqual([
      own,
      expect.objectContaining({ text: "zwei" }),
    ]);
  });

  test("ends at a command and at a button", () => {
    const [first, second] = [message("one"), message("two")];
    expect(takeBatch([first, command("help"), second])).toEqual([first]);
    expect(takeBatch([first, action("retry", "t"), second])).toEqual([first]);
  });

  test("takes the edits and deletions of its messages along, from behind other events too", () => {
    const [first, other] = [message("one"), message("hello", { author: ben })];
    const [change, removal, foreign] = [edited(first, "uno"), deleted(first), edited(other, "hallo")];
    expect(takeBatch([first, other, change, foreign, removal])).toEqual([first, change, removal]);
  });

  test("takes everything that is no message alone", () => {
    const waiting = [command("help"), message("one")];
    expect(takeBatch(waiting)).toEqual(waiting.slice(0, 1));
  });

  test("does not mix what is said to the bot with what is said to somebody else", () => {
    const waiting = [message("one"), message("two", { addressed: "other" })];
    expect(takeBatch(waiting)).toEqual(waiting.slice(0, 1));
  });

  test("keeps the branches of a conversation apart", () => {
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

  test("answers a flood in several turns", () => {
    const waiting = Array.from({ length: 50 }, (_, index) => message(String(index)));
    const taken = takeBatch(waiting);
    expect(taken).toEqual(waiting.slice(0, taken.length));
    expect(taken.length).toBeLessThan(waiting.length);
  });
});

describe("foldBatch", () => {
  test("gives the messages as they stand after their edits", () => {
    const [first, second] = [message("one"), message("two")];
    expect(foldBatch([first, second, edited(first, "uno"), edited(first, "eins")]).map(({ text }) => text)).toEqual([
      "eins",
      "two",
    ]);
  });

  test("an edit makes a message one to the bot, and never one to nobody", () => {
    const open = message("one", { addressed: "open" });
    const asked = { ...edited(open, "bot, one"), addressed: "bot" as const };
    expect(foldBatch([open, asked, edited(open, "bot, two")])).toMatchObject([{ text: "bot, two", addressed: "bot" }]);
  });

  test("leaves deleted messages out, and an edit after the deletion does not bring one back", () => {
    const [first, second] = [message("one"), message("two")];
    expect(foldBatch([first, second, deleted(first), edited(first, "uno")])).toEqual([second]);
  });
});

describe("splitBatch", () => {
  const [first, second] = [message("one"), message("two")];
  const change = edited(second, "two, changed");

  test("takes everything where nothing is known of an earlier attempt", () => {
    expect(splitBatch([first, second], [first, second], undefined)).toEqual({
      own: [first, second],
      done: [first, second],
    });
  });

  test("leaves what came after the turn had begun, with its changes", () => {
    const split = splitBatch([first, second, change], [first, second], [first.messageId]);
    expect(split).toEqual({ own: [first], done: [first] });
  });

  test("takes along the deletion of what the turn no longer knows", () => {
    const gone = deleted(first);
    const split = splitBatch([first, second, gone], [second], []);
    expect(split).toEqual({ own: [], done: [first, gone] });
  });
});
