import { describe, expect, test } from "vitest";
import type { ReplySink, Step } from "../../../../src/port/sink.ts";
import { doing, growing, LOOKED, LOOKING, settle, startWriting, whole } from "../writing.ts";

const signal = new AbortController().signal;

const OTHER: Step = { ...LOOKING, id: "1.1" };

describe("steps beside a stream on Slack that goes wrong", () => {
  test.each([
    ["began", true, growing("One"), LOOKING],
    ["began", false, growing("One"), LOOKING],
    ["ended", true, doing(growing("One"), LOOKING), LOOKED],
    ["ended", false, doing(growing("One"), LOOKING), LOOKED],
  ] as const)(
    "are closed with a stream of which nobody knows whether they %s there: %s",
    async (...[, isDone, first, step]) => {
      const { sink, slack, texts, cards } = await startWriting();
      const { id } = await sink.post(first, "n", signal);
      slack.failNext("chat.appendStream", { isDone, cutsConnection: true });
      await expect(sink.edit(id, doing(growing("One"), step, OTHER), signal)).rejects.toMatchObject({
        kind: "unavailable",
      });
      await settle(sink, id, doing(whole("One, two."), LOOKED));
      expect(texts()).toEqual(["One, two."]);
      expect(cards()).toEqual([]);
    },
  );

  test.each([
    ["the start", async (sink: ReplySink) => sink.post(doing(growing("One"), LOOKING), "n", signal)],
    [
      "a later call",
      async (sink: ReplySink) => {
        const posted = await sink.post(growing("One"), "n", signal);
        expect(await sink.edit(posted.id, doing(growing("One"), LOOKING), signal)).toEqual({ isPartial: true });
        return posted;
      },
    ],
  ])("are not tried again where %s is refused for them, and the text streams on", async (_, show) => {
    const { sink, slack, outbound, address, texts, calls, cards } = await startWriting();
    slack.setUnknown("chunks");
    const posted = (await show(sink).catch(() => undefined)) ?? (await show(sink));
    await sink.edit(posted.id, doing(growing("One, two"), LOOKING), signal);
    await sink.edit(posted.id, doing(whole("One, two."), LOOKED), signal);
    expect([texts(), cards(), calls("chat.update")]).toEqual([["One, two."], [], 0]);
    expect(outbound.sink(address).showsSteps).toBe(false);
  });
});
