import { describe, expect, test } from "vitest";
import { NO_RIGHT } from "../../../../src/port/right.ts";
import type { Draft } from "../../../../src/port/sink.ts";
import { BAD, finalDraft, GOOD, growing, signal, startDesk, startWriting } from "../writing.ts";

const END = finalDraft("One.", [GOOD, BAD]);

/** `under` returns the kinds of the blocks below each answer. */
async function begin() {
  const desk = await startDesk({ limits: { postBurst: 100 } });
  const sink = desk.outbound.sink(desk.address, NO_RIGHT);
  const under = () =>
    desk.slack
      .answers(desk.general, desk.question)
      .map(({ content }) => content.blocks.map(({ type }) => type).filter((type) => type !== "markdown"));
  return { ...desk, sink, under };
}

describe("an answer on Slack with feedback buttons", () => {
  test("an answer has Slack's own feedback buttons, however it was written", async () => {
    const { sink, under } = await begin();
    const { id } = await sink.post(growing("One"), "streamed", signal);
    await sink.edit(id, END, signal);
    await sink.post(finalDraft("Two.", [GOOD, BAD]), "posted", signal);
    const third = await sink.post(finalDraft("Three"), "updated", signal);
    await sink.edit(third.id, finalDraft("Three.", [GOOD, BAD]), signal);
    expect(under()).toEqual([["context_actions"], ["context_actions"], ["context_actions"]]);
  });

  test("a stream that cannot end with Slack's feedback buttons ends with plain ones", async () => {
    const { sink, slack, under, calls } = await begin();
    slack.setUnknown("feedback_buttons");
    const { id } = await sink.post(growing("One"), "n", signal);
    expect(await sink.edit(id, END, signal)).toEqual({ isPartial: true });
    expect(await sink.edit(id, END, signal)).toEqual({});
    expect([under(), calls("chat.update")]).toEqual([[["actions"]], 0]);
  });

  test.each([
    ["posted", async (write: (draft: Draft) => Promise<unknown>) => write(END)],
    ["updated", async (_: unknown, change: (draft: Draft) => Promise<unknown>) => change(END)],
  ])(
    "a message that is not %s with Slack's feedback buttons gets plain ones, and later messages there do too",
    async (_, make) => {
      const { slack, outbound, address, under } = await begin();
      slack.setUnknown("feedback_buttons");
      const write = (draft: Draft) => outbound.sink(address, NO_RIGHT).post(draft, "n", signal);
      const change = async (draft: Draft) => {
        const { id } = await outbound.sink(address, NO_RIGHT).post(finalDraft("One"), "n", signal);
        return outbound.sink(address, NO_RIGHT).edit(id, draft, signal);
      };
      await expect(make(write, change)).rejects.toMatchObject({ kind: "unavailable", message: /plain ones/ });
      await make(write, change);
      expect(under()).toEqual([["actions"]]);
      await outbound.sink(address, NO_RIGHT).post(finalDraft("Two.", [GOOD, BAD]), "another", signal);
      expect(slack.requests.filter(({ error }) => error === "invalid_blocks")).toHaveLength(1);
    },
  );

  test("Slack's other refusals do not replace the feedback buttons of an answer", async () => {
    const { sink, slack } = await begin();
    slack.failNext("chat.postMessage", { error: "invalid_blocks" });
    await expect(sink.post(finalDraft("One."), "n", signal)).rejects.toMatchObject({ kind: "rejected" });
  });
});

const PNG = { name: "fox.png", contentType: "image/png", bytes: Uint8Array.from([1, 2, 3]), altText: "A fox" };
const NOTE = { name: "a.md", contentType: "text/markdown", bytes: Uint8Array.from([1, 2, 3]) };

describe("removing a message on Slack", () => {
  test.each([
    [PNG, false],
    [PNG, true],
    [NOTE, false],
    [NOTE, true],
  ])("removing a message deletes its file: %j, posted by an earlier attempt: %s", async (file, isRestarted) => {
    const { slack, general, address, sink, restart } = await startWriting();
    const { id } = await sink.upload([file], undefined, "n", signal);
    await (isRestarted ? restart().sink(address, NO_RIGHT) : sink).remove(id, signal);
    expect([slack.answers(general), slack.workspace.files.size]).toEqual([[], 0]);
  });

  test("removing a message reads no files if the message has only text, and succeeds if the message is already gone", async () => {
    const { calls, sink } = await startWriting();
    const { id } = await sink.post(finalDraft("text"), "n", signal);
    const before = calls("conversations.replies");
    await sink.remove(id, signal);
    await sink.remove(id, signal);
    expect(calls("conversations.replies")).toBe(before);
  });
});
