import { describe, expect, test } from "vitest";
import { smallPrint } from "../../../../lab/slack-sim/shown-text.ts";
import { NO_RIGHT } from "../../../../src/port/right.ts";
import type { ReplySink, Step } from "../../../../src/port/sink.ts";
import { finalDraft, growing, LOOKED, LOOKING, settle, signal, startWriting, withSteps } from "../writing.ts";

describe("steps in a stream on Slack", () => {
  test("steps become cards, sent with the next text or alone", async () => {
    const { sink, argsOf, texts, cards } = await startWriting();
    expect(sink.traits?.steps).toBe(true);
    const { id } = await sink.post(growing("Let me look."), "n", signal);
    await sink.edit(id, withSteps(growing("Let me look."), LOOKING), signal);
    expect(cards()).toEqual([["Looking up the time", "in_progress"]]);
    await sink.edit(id, withSteps(growing("Let me look.\n\nIt is"), LOOKED), signal);
    await sink.edit(id, withSteps(finalDraft("Let me look.\n\nIt is noon."), LOOKED), signal);
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
    expect(JSON.parse(String(argsOf("chat.stopStream")[0]?.["chunks"]))).toEqual([
      { type: "markdown_text", text: " noon." },
      { type: "plan_update", title: "Used 1 tool, 0.1 s" },
    ]);
  });

  test("steps from before the first text appear together with that text, folded", async () => {
    const { sink, argsOf, texts, cards } = await startWriting();
    const { id } = await sink.post(withSteps(growing("It is"), LOOKED), "n", signal);
    expect(argsOf("chat.startStream")[0]).toMatchObject({ task_display_mode: "plan" });
    expect(cards()).toEqual([["Looking up the time", "complete"]]);
    await sink.edit(id, withSteps(finalDraft("It is noon."), LOOKED), signal);
    expect(texts()).toEqual(["It is noon."]);
  });

  test("unchanged steps cost no call", async () => {
    const { sink, calls } = await startWriting();
    const { id } = await sink.post(withSteps(growing("One"), LOOKING), "n", signal);
    await sink.edit(id, withSteps(growing("One"), LOOKING), signal);
    expect(calls("chat.appendStream")).toBe(0);
    await sink.edit(id, withSteps(finalDraft("One."), LOOKED), signal);
  });

  test("the adapter closes steps when the turn fails, or when they continue in the next message", async () => {
    const { sink, slack, general, question } = await startWriting();
    const first = await sink.post(withSteps(growing("One"), LOOKING), "n:0", signal);
    await sink.edit(first.id, finalDraft("One."), signal);
    const second = await sink.post(withSteps(growing("Two"), LOOKING), "n:1", signal);
    await sink.edit(second.id, withSteps(finalDraft("Two.\n\n_Stopped._"), { ...LOOKING, state: "failed" }), signal);
    const statuses = slack.answers(general, question).map(({ stream }) => stream?.tasks.get("1.0")?.["status"]);
    expect(statuses).toEqual(["complete", "error"]);
  });

  test("rewriting a message removes its steps and its text", async () => {
    const { sink, slack, general, question, texts, cards } = await startWriting();
    const { id } = await sink.post(withSteps(growing("One"), LOOKING), "n", signal);
    slack.advance(250_000);
    await settle(sink, id, withSteps(growing("One, two"), LOOKING));
    expect([sink.fallback?.isActive, cards()]).toEqual([true, []]);
    await settle(sink, id, withSteps(finalDraft("One, two."), LOOKED));
    expect(texts()).toEqual(["One, two."]);
    expect(slack.answers(general, question).map(({ content }) => smallPrint(content))).toEqual([
      ["Used 1 tool, 0.1 s"],
    ]);
  });

  test("steps of a process that died disappear with its stream", async () => {
    const { sink, restart, address, texts, cards } = await startWriting();
    const { id } = await sink.post(withSteps(growing("One"), LOOKING), "n", signal);
    await settle(restart().sink(address, NO_RIGHT), id, finalDraft("One, two."));
    expect([texts(), cards()]).toEqual([["One, two."], []]);
  });

  test("steps fit next to a text of the maximum length", async () => {
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
    const { id } = await sink.post(withSteps(growing("word"), ...steps), "n", signal);
    await sink.edit(id, withSteps(finalDraft(text), ...steps), signal);
    expect(texts()).toEqual([text]);
    expect([sink.fallback?.isActive, cards().length]).toEqual([false, 9]);
  });
});

const OTHER: Step = { ...LOOKING, id: "1.1" };

describe("steps in a stream that Slack refuses", () => {
  test.each([
    ["began", true, growing("One"), LOOKING],
    ["began", false, growing("One"), LOOKING],
    ["ended", true, withSteps(growing("One"), LOOKING), LOOKED],
    ["ended", false, withSteps(growing("One"), LOOKING), LOOKED],
  ] as const)(
    "the adapter closes the steps of a stream if Slack may not know that they %s: %s",
    async (...[, isDone, first, step]) => {
      const { sink, slack, texts, cards } = await startWriting();
      const { id } = await sink.post(first, "n", signal);
      slack.failNext("chat.appendStream", { isDone, cutsConnection: true });
      await expect(sink.edit(id, withSteps(growing("One"), step, OTHER), signal)).rejects.toMatchObject({
        kind: "unavailable",
      });
      await settle(sink, id, withSteps(finalDraft("One, two."), LOOKED));
      expect(texts()).toEqual(["One, two."]);
      expect(cards()).toEqual([]);
    },
  );

  test.each([
    ["the start", async (sink: ReplySink) => sink.post(withSteps(growing("One"), LOOKING), "n", signal)],
    [
      "a later call",
      async (sink: ReplySink) => {
        const posted = await sink.post(growing("One"), "n", signal);
        expect(await sink.edit(posted.id, withSteps(growing("One"), LOOKING), signal)).toEqual({ isPartial: true });
        return posted;
      },
    ],
  ])(
    "the adapter does not send steps again if Slack refuses %s because of them, and still streams the text",
    async (_, show) => {
      const { sink, slack, outbound, address, general, question, texts, calls, cards } = await startWriting();
      slack.setUnknown("chunks");
      const posted = (await show(sink).catch(() => undefined)) ?? (await show(sink));
      await sink.edit(posted.id, withSteps(growing("One, two"), LOOKING), signal);
      await sink.edit(posted.id, withSteps(finalDraft("One, two."), LOOKED), signal);
      expect([texts(), cards(), calls("chat.update")]).toEqual([["One, two."], [], 0]);
      expect(slack.answers(general, question).map(({ content }) => smallPrint(content))).toEqual([
        ["Used 1 tool, 0.1 s"],
      ]);
      expect(outbound.sink(address, NO_RIGHT).traits?.steps).toBe(false);
    },
  );
});
