import { describe, expect, test } from "vitest";
import {
  closeCards,
  MAX_CARDS,
  MAX_TITLE_BYTES,
  type TaskCards,
  toAddition,
  toCards,
  toTaskChunks,
} from "../../../../adapters/slack/write/cards.ts";
import { MAX_LENGTH } from "../../../../adapters/slack/write/markdown.ts";
import type { Step } from "../../../../src/port/sink.ts";

const NONE: TaskCards = new Map();

function step(id: string, state: Step["state"] = "running", title = `looking at ${id}`): Step {
  return { id, title, state };
}

describe("the cards of a stream on Slack", () => {
  test("show each step and its state", () => {
    const cards = toCards([step("a"), step("b", "done"), step("c", "failed")], NONE);
    expect([...cards]).toEqual([
      ["a", { title: "Looking at a", status: "in_progress" }],
      ["b", { title: "Looking at b", status: "complete" }],
      ["c", { title: "Looking at c", status: "error" }],
    ]);
  });

  test("are sent only where they have changed", () => {
    const before = toCards([step("a"), step("b")], NONE);
    const after = toCards([step("a", "done"), step("b"), step("c")], before);
    expect(toTaskChunks(before, after)).toEqual([
      { type: "task_update", id: "a", title: "Looking at a", status: "complete" },
      { type: "task_update", id: "c", title: "Looking at c", status: "in_progress" },
    ]);
    expect(toTaskChunks(after, after)).toEqual([]);
  });

  test("are closed when their step goes on elsewhere, or the stream ends", () => {
    const before = toCards([step("a"), step("b")], NONE);
    expect([...toCards([step("b")], before).values()].map(({ status }) => status)).toEqual(["complete", "in_progress"]);
    expect([...closeCards(before).values()].map(({ status }) => status)).toEqual(["complete", "complete"]);
  });

  test("are few, however much is done: the rest shares one", () => {
    const many = Array.from({ length: 40 }, (_, index) => step(`s${index}`, index < 39 ? "done" : "running"));
    const cards = toCards(many, NONE);
    expect(cards.size).toBe(MAX_CARDS + 1);
    expect(cards.get("rest")).toEqual({ title: "More steps", status: "in_progress" });
    const over = many.map((one): Step => ({ ...one, state: "done" }));
    expect(toTaskChunks(cards, toCards(over, cards))).toEqual([
      { type: "task_update", id: "rest", title: "More steps", status: "complete" },
    ]);
  });

  test("have titles of one line that notify nobody, in whole characters", () => {
    const [japanese, loud] = toCards([step("a", "done", "調".repeat(90)), step("b", "done", "asking <!channel>")], NONE)
      .values()
      .map(({ title }) => title)
      .toArray();
    expect(japanese).toBe(`${"調".repeat(32)}…`);
    expect(loud).toBe("Asking <\u200B!channel>");
  });

  test("with a full text are within what a streamed message holds", () => {
    const greatest = MAX_LENGTH + (MAX_CARDS + 1) * MAX_TITLE_BYTES;
    expect(greatest).toBeLessThan(10_571);
  });

  test("come with text as chunks, and text alone as text", () => {
    const task = { type: "task_update", id: "a", title: "A", status: "complete" };
    expect(toAddition("", [])).toEqual({});
    expect(toAddition("Hi", [])).toEqual({ markdown_text: "Hi" });
    expect(toAddition("", [task])).toEqual({ chunks: [task] });
    expect(toAddition("Hi", [task])).toEqual({ chunks: [{ type: "markdown_text", text: "Hi" }, task] });
  });
});
