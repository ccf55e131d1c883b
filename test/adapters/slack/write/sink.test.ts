import { describe, expect, test } from "vitest";
import { SinkError } from "../../../../src/port/errors.ts";
import type { Draft } from "../../../../src/port/sink.ts";
import { growing, RETRY, STOP, startDesk, whole } from "../writing.ts";

const signal = new AbortController().signal;

describe("a reply on Slack that grows as a stream", () => {
  test("is started, added to and stopped, and shows what the draft says", async () => {
    const { slack, general, question, address, outbound, calls } = await startDesk();
    const sink = outbound.sink(address);
    const { id } = await sink.post(growing("One"), "n", signal);
    await sink.edit(id, growing("One, two"), signal);
    await sink.edit(id, growing("One, two, **thr", { markdown: "One, two, **thr**" }), signal);
    await sink.edit(id, whole("One, two, **three**.", [RETRY]), signal);
    const [message] = slack.answers(general, question);
    expect(slack.texts(general, question)).toEqual(["One, two, **three**."]);
    expect(message?.states.map(({ shown }) => shown)).toEqual([
      "One",
      "One, two",
      "One, two, **thr",
      "One, two, **three**.",
    ]);
    expect(message?.stream?.state).toBe("completed");
    expect(["chat.startStream", "chat.appendStream", "chat.stopStream", "chat.update"].map(calls)).toEqual([
      1, 2, 1, 0,
    ]);
    expect(sink.fallback?.isActive).toBe(false);
  });

  test("is remembered as a turn's, since it shows no button that could say so", async () => {
    const { running, address, outbound } = await startDesk();
    const sink = outbound.sink(address);
    const { id } = await sink.post(growing("One", { buttons: [STOP] }), "n", signal);
    expect(running.find(id)).toBe("turn-1");
    await sink.edit(id, whole("One."), signal);
  });

  test("adds nothing that may become a mention before it is known", async () => {
    const { slack, general, question, address, outbound } = await startDesk();
    const sink = outbound.sink(address);
    const { id } = await sink.post(growing("Hello <"), "n", signal);
    await sink.edit(id, growing("Hello <!chan"), signal);
    await sink.edit(id, growing("Hello <!channel> and <@U0"), signal);
    await sink.edit(id, growing("Hello <!channel> and <@U012> and <"), signal);
    await sink.edit(id, whole("Hello <!channel> and <@U012> and <!subteam^S1|all> `<!here>` <div>"), signal);
    const [message] = slack.answers(general, question);
    expect(message?.states.map(({ shown }) => shown.replaceAll("\u200B", "")).slice(0, 2)).toEqual([
      "Hello ",
      "Hello <!channel> and <@U0",
    ]);
    expect(slack.pings).toEqual([]);
    expect(slack.texts(general, question)[0]).toContain(" <div>");
  });

  test("is written whole when the last text is not what was streamed", async () => {
    const { slack, general, question, address, outbound } = await startDesk();
    const sink = outbound.sink(address);
    const { id } = await sink.post(growing("One two"), "n", signal);
    const draft = whole("Something else.", [RETRY]);
    expect(await sink.edit(id, draft, signal)).toEqual({ isPartial: true });
    expect(sink.fallback?.isActive).toBe(true);
    await sink.edit(id, draft, signal);
    expect(slack.texts(general, question)).toEqual(["Something else."]);
  });
});

describe("a reply on Slack that is written whole", () => {
  test("says no to a draft that is longer than what fits", async () => {
    const { address, outbound } = await startDesk();
    const sink = outbound.sink(address);
    const { maxLength } = sink.limits;
    await expect(sink.post(whole("x".repeat(maxLength + 1)), "n", signal)).rejects.toBeInstanceOf(SinkError);
  });

  test("notifies nobody by plain words either, which an update may read as markup", async () => {
    const { slack, address, outbound } = await startDesk({ streaming: "unknown_method" });
    const sink = outbound.sink(address);
    const { id } = await sink.post(whole("Ask @channel"), "n", signal);
    await sink.edit(id, whole("Ask @channel, or @here."), signal);
    expect(slack.pings).toEqual([]);
  });

  test("says how much it shows when it takes no more changes, also to another run", async () => {
    const { slack, general, question, address, outbound, restart } = await startDesk({ streaming: "unknown_method" });
    const sink = outbound.sink(address);
    sink.fallback?.activate();
    const { id } = await sink.post(growing("One, two"), "n", signal);
    // Nobody knows whether it was carried out.
    slack.failNext("chat.update", { isDone: true, status: 504 });
    await expect(sink.edit(id, growing("One, two, three"), signal)).rejects.toMatchObject({ kind: "unavailable" });
    slack.setSealed("edit_window_closed");
    for (const one of [sink, restart().sink(address)]) {
      const refusal = (draft: Draft) =>
        one.edit(id, draft, signal).catch(({ kind, shownLength }) => [kind, shownLength]);
      expect(await refusal(whole("One, two, three, four."))).toEqual(["sealed", "One, two, three".length]);
      expect(await refusal(whole("One, two, three"))).toEqual(["sealed", "One, two, three".length]);
      expect(await refusal(whole("Uno, dos, tres, cuatro."))).toEqual(["sealed", 0]);
    }
    expect(slack.texts(general, question)).toEqual(["One, two, three"]);
  });

  test("needs no change where it shows all already", async () => {
    const { slack, address, outbound } = await startDesk({ streaming: "unknown_method" });
    const sink = outbound.sink(address);
    const { id } = await sink.post(whole("One."), "n", signal);
    slack.setSealed("edit_window_closed");
    expect(await sink.edit(id, whole("One."), signal)).toEqual({});
  });

  test("is posted with words for notifications, without previews, and updated", async () => {
    const { slack, general, question, address, outbound } = await startDesk();
    slack.setStreaming("unknown_method");
    const sink = outbound.sink(address);
    await expect(sink.post(growing("One"), "n", signal)).rejects.toMatchObject({ kind: "unavailable" });
    expect(sink.fallback?.isActive).toBe(true);
    const { id } = await sink.post(growing("One"), "n", signal);
    await sink.edit(id, growing("One <!here>"), signal);
    await sink.edit(id, whole("One <!here> & two", [RETRY]), signal);
    expect(slack.texts(general, question)).toEqual(["One <\u200B!here> & two"]);
    const posted = slack.requests.find(({ method }) => method === "chat.postMessage");
    expect(posted?.args).toMatchObject({ text: "One", unfurl_links: "false", unfurl_media: "false" });
    expect(outbound.sink(address).fallback?.isActive).toBe(true);
  });
});
