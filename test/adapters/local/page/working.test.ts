import { describe, expect, test } from "vitest";
import type { MessageRow } from "../../../../adapters/local/page/wire.ts";
import { isWorking, orderMessages } from "../../../../adapters/local/page/working.ts";

function message(id: number, more: Partial<MessageRow> = {}): MessageRow {
  const look = {
    text: "",
    isCommand: false,
    options: {},
    buttons: [],
    steps: [],
    stepsLine: "",
    judgement: null,
    isStreaming: false,
    files: [],
  };
  const times = { createdAt: id, editedAt: null, movedBehind: null, isDeleted: false };
  const place = { chatId: "c", isBot: true, replyTo: null, nonce: null, isAside: false };
  return { type: "message", seq: id, id, ...place, ...look, ...times, ...more };
}

const STOP = [{ action: "stop" as const, turnId: "t", label: "Stop" }];

describe("the order of messages at the local page", () => {
  const order = (...messages: MessageRow[]) => orderMessages(messages).map(({ id }) => id);

  test("messages appear in the order in which they were written", () =>
    expect(order(message(3), message(1), message(2))).toEqual([1, 2, 3]));

  test("a running status appears after everything else", () => {
    expect(order(message(1), message(2, { buttons: STOP }), message(3), message(4, { buttons: STOP }))).toEqual([
      1, 3, 2, 4,
    ]);
  });

  test("an ended status appears before later messages and after its own", () => {
    const ended = [message(1, { movedBehind: 4 }), message(2, { movedBehind: 4 })];
    expect(order(...ended, message(3), message(4), message(5))).toEqual([3, 4, 1, 2, 5]);
  });

  test("the images of one request appear in the order of their numbers, and other messages keep their positions", () => {
    const drawn = (id: number, turnId: string) =>
      message(id, { buttons: [{ action: "again", turnId, label: "Again" }] });
    const messages = [drawn(2, "j.3"), message(3), drawn(4, "j.1"), drawn(5, "k.1"), drawn(6, "j.2")];
    expect(order(message(1), ...messages)).toEqual([1, 4, 3, 6, 5, 2]);
  });

  test("a growing answer keeps its position", () => {
    const growing = message(1, { buttons: STOP, isStreaming: true });
    expect(isWorking(growing)).toBe(false);
    expect(order(growing, message(2))).toEqual([1, 2]);
  });
});
