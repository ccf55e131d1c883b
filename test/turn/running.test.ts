import { describe, expect, test } from "vitest";
import { newRecord } from "../../src/turn/record.ts";
import { createRunningTurn } from "../../src/turn/running.ts";
import { action, ben, deleted, edited, message } from "../support/events.ts";

function begin(...texts: string[]) {
  const messages = texts.map((text) => message(text));
  const record = newRecord(messages, messages);
  const turn = createRunningTurn(record, messages);
  const [first, second] = messages;
  if (first === undefined) throw new Error("a turn needs a message");
  return { turn, record, first, second: second ?? first };
}

describe("a running turn", () => {
  test("is interrupted by an edit, and begins again with the changed words", () => {
    const { turn, first } = begin("Helo", "World");
    const { controller } = turn.begin();
    const edit = edited(first, "Hello");
    turn.notice(edit);
    expect(controller.signal.reason).toBe("superseded");
    const next = turn.begin();
    expect(next.controller.signal.aborted).toBe(false);
    expect(next.changes).toEqual([edit]);
    expect(next.messages.map(({ text }) => text)).toEqual(["Hello", "World"]);
    expect(turn.taken()).toEqual([edit]);
  });

  test("loses a message that is deleted", () => {
    const { turn, record, first, second } = begin("one", "two");
    turn.notice(deleted(first));
    expect(turn.begin().messages.map(({ text }) => text)).toEqual(["two"]);
    expect(record.messageIds).toEqual([second.messageId]);
  });

  test("is left alone by changes of other messages, by an echo, and by strangers", () => {
    const { turn, record, first } = begin("Hello");
    const { controller } = turn.begin();
    turn.notice(edited(message("another"), "changed"));
    turn.notice(edited(first, "Hello"));
    expect(turn.notice(action("stop", record.id, { author: ben }))).toBe("refused");
    expect(turn.notice(action("stop", "another", { author: ben }))).toBeUndefined();
    expect(turn.notice(action("retry", record.id))).toBeUndefined();
    expect(controller.signal.aborted).toBe(false);
    expect(turn.taken()).toEqual([]);
  });

  test("stays stopped, whichever attempt the stop met", () => {
    const { turn, record, first } = begin("Helo");
    turn.begin();
    turn.notice(edited(first, "Hello"));
    turn.notice(action("stop", record.id));
    expect(turn.begin().controller.signal.reason).toBe("stopped");
  });

  test("goes on after its end when a change came too late to interrupt it", () => {
    const { turn, first } = begin("Helo");
    turn.begin();
    expect(turn.mustGoOn("ended")).toBe(false);
    turn.notice(edited(first, "Hello"));
    expect(turn.mustGoOn("ended")).toBe(true);
  });

  test("does not go on for an edit once it was stopped, but for the deletion of everything", () => {
    const { turn, record, first } = begin("Helo");
    turn.begin();
    turn.notice(action("stop", record.id));
    turn.notice(edited(first, "Hello"));
    expect(turn.mustGoOn("ended")).toBe(false);
    turn.notice(deleted(first));
    expect(turn.mustGoOn("ended")).toBe(true);
  });
});
