import { describe, expect, test } from "vitest";
import { MAX_CARDS, type TaskCards, toCards, toTaskChunks } from "../../../../adapters/slack/write/cards.ts";
import type { Step } from "../../../../src/port/sink.ts";

const NONE: TaskCards = new Map();

function step(id: string, state: Step["state"] = "running", title = `looking at ${id}`): Step {
  return { id, title, state };
}

describe("the cards of a stream on Slack", () => {
  test("a card shows the sources of its step once, as many as fit", () => {
    const running = toCards([step("a")], NONE);
    const one = { url: "https://a.example/", title: "A" };
    const long = { url: `https://a.example/${"x".repeat(300)}`, title: "long" };
    const many = Array.from({ length: 5 }, (_, index) => ({
      url: `https://a.example/${index}`,
      title: "x".repeat(300),
    }));
    const done: Step = { ...step("a", "done"), sources: [long, one] };
    const after = toCards([done], running);
    const chunk = { type: "task_update", id: "a", title: "Looking at a", status: "complete" };
    expect(toTaskChunks(running, after)).toEqual([{ ...chunk, sources: [{ type: "url", url: one.url, text: "A" }] }]);
    // Slack appends these sources to those that the card already has.
    const again = toCards([{ ...done, title: "looking again" }], after);
    expect(toTaskChunks(after, again)).toEqual([{ ...chunk, title: "Looking again" }]);
    const [full] = toCards([{ ...done, sources: many }], NONE).values();
    expect(full?.sources).toHaveLength(1);
  });

  test("the number of cards is limited, and further steps share one card", () => {
    const many = Array.from({ length: 40 }, (_, index) => step(`s${index}`, index < 39 ? "done" : "running"));
    const cards = toCards(many, NONE);
    expect(cards.size).toBe(MAX_CARDS + 1);
    expect(cards.get("rest")).toEqual({ title: "More steps", status: "in_progress" });
    const over = many.map((one): Step => ({ ...one, state: "done" }));
    expect(toTaskChunks(cards, toCards(over, cards))).toEqual([
      { type: "task_update", id: "rest", title: "More steps", status: "complete" },
    ]);
  });

  test("card titles have one line, notify no one, and split no character", () => {
    const [japanese, loud] = toCards([step("a", "done", "調".repeat(90)), step("b", "done", "asking <!channel>")], NONE)
      .values()
      .map(({ title }) => title)
      .toArray();
    expect(japanese).toBe(`${"調".repeat(32)}…`);
    expect(loud).toBe("Asking <\u200B!channel>");
  });
});
