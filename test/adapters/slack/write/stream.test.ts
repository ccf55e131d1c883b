import { describe, expect, test } from "vitest";
import type { Step } from "../../../../src/port/sink.ts";
import { doing, growing, LOOKED, LOOKING, settle, startWriting, whole } from "../writing.ts";

const signal = new AbortController().signal;

describe("steps beside a stream on Slack", () => {
  test("are cards, which come with text that is due, or alone", async () => {
    const { sink, argsOf, texts, cards } = await startWriting();
    expect(sink.showsSteps).toBe(true);
    const { id } = await sink.post(growing("Let me look."), "n", signal);
    await sink.edit(id, doing(growing("Let me look."), LOOKING), signal);
    expect(cards()).toEqual([["Looking up the time", "in_progress"]]);
    await sink.edit(id, doing(growing("Let me look.\n\nIt is"), LOOKED), signal);
    await sink.edit(id, doing(whole("Let me look.\n\nIt is noon."), LOOKED), signal);
    expect(texts()).toEqual(["Let me look.\n\nIt is noon."]);
    expect(cards()).toEqual([["Looking up the time", "complete"]]);
    const task = { type: "task_update", id: "1.0", title: "Looking up the time" };
    expect(argsOf("chat.appendStream").map(({ chunks }) => JSON.parse(String(chunks)))).toEqual([
      [{ ...task, status: "in_progress" }],
      [
        { type: "markdown_text", text: "\n\nIt is" },
        { ...task, status: "complete" },
      ],
    ]);
    expect(argsOf("chat.stopStream")[0]).toMatchObject({ markdown_text: " noon." });
  });

  test("that came before the first text are there with it, folded", async () => {
    const { sink, argsOf, texts, cards } = await startWriting();
    const { id } = await sink.post(doing(growing("It is"), LOOKED), "n", signal);
    expect(argsOf("chat.startStream")[0]).toMatchObject({ task_display_mode: "plan" });
    expect(cards()).toEqual([["Looking up the time", "complete"]]);
    await sink.edit(id, doing(whole("It is noon."), LOOKED), signal);
    expect(texts()).toEqual(["It is noon."]);
  });

  test("cost no call when nothing of them has changed", async () => {
    const { sink, calls } = await startWriting();
    const { id } = await sink.post(doing(growing("One"), LOOKING), "n", signal);
    await sink.edit(id, doing(growing("One"), LOOKING), signal);
    expect(calls("chat.appendStream")).toBe(0);
    await sink.edit(id, doing(whole("One."), LOOKED), signal);
  });

  test("do not spin on when the turn ends badly, nor when they go on in the next message", async () => {
    const { sink, slack, general, question } = await startWriting();
    const first = await sink.post(doing(growing("One"), LOOKING), "n:0", signal);
    await sink.edit(first.id, whole("One."), signal);
    const second = await sink.post(doing(growing("Two"), LOOKING), "n:1", signal);
    await sink.edit(second.id, doing(whole("Two.\n\n_Stopped._"), { ...LOOKING, state: "failed" }), signal);
    const statuses = slack.answers(general, question).map(({ stream }) => stream?.tasks.get("1.0")?.["status"]);
    expect(statuses).toEqual(["complete", "error"]);
  });

  test("are gone when the message is written whole, and so is nothing of its text", async () => {
    const { sink, slack, texts, cards } = await startWriting();
    const { id } = await sink.post(doing(growing("One"), LOOKING), "n", signal);
    slack.advance(250_000);
    await settle(sink, id, doing(growing("One, two"), LOOKING));
    expect([sink.fallback?.isActive, cards()]).toEqual([true, []]);
    await settle(sink, id, doing(whole("One, two."), LOOKED));
    expect(texts()).toEqual(["One, two."]);
  });

  test("of a process that died go with what it had begun", async () => {
    const { sink, restart, address, texts, cards } = await startWriting();
    const { id } = await sink.post(doing(growing("One"), LOOKING), "n", signal);
    await settle(restart().sink(address), id, whole("One, two."));
    expect([texts(), cards()]).toEqual([["One, two."], []]);
  });

  test("fit beside a text of the greatest length", async () => {
    const { sink, texts, cards } = await startWriting();
    const steps = Array.from(
      { length: 30 },
      (_, index): Step => ({
        id: `1.${index}`,
        title: "looking ".repeat(20),
        state: "done",
      }),
    );
    const text = "word ".repeat(sink.limits.maxLength / 5).trim();
    const { id } = await sink.post(doing(growing("word"), ...steps), "n", signal);
    await sink.edit(id, doing(whole(text), ...steps), signal);
    expect(texts()).toEqual([text]);
    expect([sink.fallback?.isActive, cards().length]).toEqual([false, 9]);
  });
});
