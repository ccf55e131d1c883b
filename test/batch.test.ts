import { describe, expect, test } from "vitest";
import { foldBatch, takeBatch } from "../src/batch.ts";
import { action, ben, command, deleted, edited, message } from "./support/events.ts";

describe("takeBatch", () => {
  test("takes together what one author wrote while waiting", () => {
    const waiting = [message("one"), message("two"), message("three")];
    expect(takeBatch(waiting)).toEqual(waiting);
  });

  test("ends where somebody else speaks, so that the order of the conversation holds", () => {
    const [first, other, second] = [message("one"), message("hello", { author: ben }), message("two")];
    expect(takeBatch([first, other, second])).toEqual([first]);
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

  test("leaves deleted messages out, and an edit after the deletion does not bring one back", () => {
    const [first, second] = [message("one"), message("two")];
    expect(foldBatch([first, second, deleted(first), edited(first, "uno")])).toEqual([second]);
  });
});
