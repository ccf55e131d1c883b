import { describe, expect, test } from "vitest";
import type { Draft } from "../../../../src/port/sink.ts";
import { BAD, finalDraft, GOOD, growing, startDesk } from "../writing.ts";

const signal = new AbortController().signal;
const END = finalDraft("One.", [GOOD, BAD]);

/** `under` tells what stands under each answer, by the kinds of the blocks. */
async function begin() {
  const desk = await startDesk({ limits: { postBurst: 100 } });
  const sink = desk.outbound.sink(desk.address);
  const under = () =>
    desk.slack
      .answers(desk.general, desk.question)
      .map(({ content }) => content.blocks.map(({ type }) => type).filter((type) => type !== "markdown"));
  return { ...desk, sink, under };
}

describe("an answer on Slack with feedback buttons", () => {
  test("has Slack's own buttons for it, however it was written", async () => {
    const { sink, under } = await begin();
    const { id } = await sink.post(growing("One"), "streamed", signal);
    await sink.edit(id, END, signal);
    await sink.post(finalDraft("Two.", [GOOD, BAD]), "posted", signal);
    const third = await sink.post(finalDraft("Three"), "updated", signal);
    await sink.edit(third.id, finalDraft("Three.", [GOOD, BAD]), signal);
    expect(under()).toEqual([["context_actions"], ["context_actions"], ["context_actions"]]);
  });

  test("has plain ones when a stream is not ended with those, in the same stream", async () => {
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
  ])("has plain ones when it is not %s with those, and they are not tried there again", async (_, make) => {
    const { slack, outbound, address, under } = await begin();
    slack.setUnknown("feedback_buttons");
    const write = (draft: Draft) => outbound.sink(address).post(draft, "n", signal);
    const change = async (draft: Draft) => {
      const { id } = await outbound.sink(address).post(finalDraft("One"), "n", signal);
      return outbound.sink(address).edit(id, draft, signal);
    };
    await expect(make(write, change)).rejects.toMatchObject({ kind: "unavailable", message: /plain ones/ });
    await make(write, change);
    expect(under()).toEqual([["actions"]]);
    await outbound.sink(address).post(finalDraft("Two.", [GOOD, BAD]), "another", signal);
    expect(slack.requests.filter(({ error }) => error === "invalid_blocks")).toHaveLength(1);
  });

  test("is refused as ever when the buttons are not what Slack minds", async () => {
    const { sink, slack } = await begin();
    slack.failNext("chat.postMessage", { error: "invalid_blocks" });
    await expect(sink.post(finalDraft("One."), "n", signal)).rejects.toMatchObject({ kind: "rejected" });
  });
});

const PNG = { name: "fox.png", contentType: "image/png", bytes: Uint8Array.from([1, 2, 3]), altText: "A fox" };
const NOTE = { name: "a.md", contentType: "text/markdown", bytes: Uint8Array.from([1, 2, 3]) };

describe("taking a message back on Slack", () => {
  test.each([PNG, NOTE])("takes its file along: $name", async (file) => {
    const { slack, general, address, outbound } = await startDesk();
    const sink = outbound.sink(address);
    const { id } = await sink.upload([file], undefined, "n", signal);
    await sink.remove(id, signal);
    expect(slack.answers(general)).toEqual([]);
    expect(slack.workspace.files.size).toBe(0);
  });

  test.each([PNG, NOTE])("takes its file along also when an earlier attempt brought it: $name", async (file) => {
    const { slack, general, address, outbound, restart } = await startDesk();
    const { id } = await outbound.sink(address).upload([file], undefined, "n", signal);
    await restart().sink(address).remove(id, signal);
    expect(slack.answers(general)).toEqual([]);
    expect(slack.workspace.files.size).toBe(0);
  });

  test("reads nothing of a message that is known to be text, and does not mind that it is gone", async () => {
    const { address, outbound, calls } = await startDesk();
    const sink = outbound.sink(address);
    const { id } = await sink.post(finalDraft("text"), "n", signal);
    const before = calls("conversations.replies");
    await sink.remove(id, signal);
    await sink.remove(id, signal);
    expect(calls("conversations.replies")).toBe(before);
  });
});
