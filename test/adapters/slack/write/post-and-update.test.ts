import { describe, expect, test } from "vitest";
import type { Draft } from "../../../../src/port/sink.ts";
import { BAD, GOOD, growing, startDesk, whole } from "../writing.ts";

const signal = new AbortController().signal;
const END = whole("One.", [GOOD, BAD]);

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

describe("an answer on Slack that is judged", () => {
  test("has Slack's own buttons for it, however it was written", async () => {
    const { sink, under } = await begin();
    const { id } = await sink.post(growing("One"), "streamed", signal);
    await sink.edit(id, END, signal);
    await sink.post(whole("Two.", [GOOD, BAD]), "posted", signal);
    const third = await sink.post(whole("Three"), "updated", signal);
    await sink.edit(third.id, whole("Three.", [GOOD, BAD]), signal);
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
      const { id } = await outbound.sink(address).post(whole("One"), "n", signal);
      return outbound.sink(address).edit(id, draft, signal);
    };
    await expect(make(write, change)).rejects.toMatchObject({ kind: "unavailable", message: /plain ones/ });
    await make(write, change);
    expect(under()).toEqual([["actions"]]);
    await outbound.sink(address).post(whole("Two.", [GOOD, BAD]), "another", signal);
    expect(slack.requests.filter(({ error }) => error === "invalid_blocks")).toHaveLength(1);
  });

  test("is refused as ever when the buttons are not what Slack minds", async () => {
    const { sink, slack } = await begin();
    slack.failNext("chat.postMessage", { error: "invalid_blocks" });
    await expect(sink.post(whole("One."), "n", signal)).rejects.toMatchObject({ kind: "rejected" });
  });
});
