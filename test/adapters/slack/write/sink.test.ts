import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { toSettledMarkdown } from "../../../../adapters/slack/write/markdown.ts";
import { LIMITS } from "../../../../adapters/slack/write/sink.ts";
import { asResumed, NO_RIGHT, withFence } from "../../../../src/port/right.ts";
import type { Draft } from "../../../../src/port/sink.ts";
import { createSplitter } from "../../../../src/text/split.ts";
import { finalDraft, growing, RETRY, settle, signal, startDesk, startWriting } from "../writing.ts";

describe("a reply on Slack that grows as a stream", () => {
  test("a streamed reply starts, grows and stops, and shows the draft", async () => {
    const { slack, general, question, calls, sink } = await startWriting();
    const { id } = await sink.post(growing("One"), "n", signal);
    await sink.edit(id, growing("One, two"), signal);
    await sink.edit(id, growing("One, two, **thr", { markdown: "One, two, **thr**" }), signal);
    await sink.edit(id, finalDraft("One, two, **three**.", [RETRY]), signal);
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

  test("a streamed reply adds nothing that could become a mention until that is decided", async () => {
    const { slack, general, question, sink } = await startWriting();
    const { id } = await sink.post(growing("Hello <"), "n", signal);
    await sink.edit(id, growing("Hello <!chan"), signal);
    await sink.edit(id, growing("Hello <!channel> and <@U0"), signal);
    await sink.edit(id, growing("Hello <!channel> and <@U012> and <"), signal);
    await sink.edit(id, finalDraft("Hello <!channel> and <@U012> and <!subteam^S1|all> `<!here>` <div>"), signal);
    const [message] = slack.answers(general, question);
    expect(message?.states.map(({ shown }) => shown.replaceAll("\u200B", "")).slice(0, 2)).toEqual([
      "Hello ",
      "Hello <!channel> and <@U0",
    ]);
    expect(slack.pings).toEqual([]);
    expect(slack.texts(general, question)[0]).toContain(" <div>");
  });

  test("the adapter rewrites a streamed reply if the last text differs from the streamed text", async () => {
    const { slack, general, question, sink } = await startWriting();
    const { id } = await sink.post(growing("One two"), "n", signal);
    const draft = finalDraft("Something else.", [RETRY]);
    expect(await sink.edit(id, draft, signal)).toEqual({ isPartial: true });
    expect(sink.fallback?.isActive).toBe(true);
    await sink.edit(id, draft, signal);
    expect(slack.texts(general, question)).toEqual(["Something else."]);
  });
});

describe("a reply on Slack that is posted and updated", () => {
  test("a posted reply notifies no one with plain words, which an update may read as markup", async () => {
    const { slack, sink } = await startWriting({ streaming: "unknown_method" });
    const { id } = await sink.post(finalDraft("Ask @channel"), "n", signal);
    await sink.edit(id, finalDraft("Ask @channel, or @here."), signal);
    expect(slack.pings).toEqual([]);
  });

  test("a reply that Slack refuses to edit says how much it shows, even to another run", async () => {
    const { slack, address, restart, sink, texts } = await startWriting({ streaming: "unknown_method" });
    sink.fallback?.activate();
    const { id } = await sink.post(growing("One, two"), "n", signal);
    // It is unknown whether Slack executed the call.
    slack.failNext("chat.update", { isDone: true, status: 504 });
    await expect(sink.edit(id, growing("One, two, three"), signal)).rejects.toMatchObject({ kind: "unavailable" });
    slack.setSealed("edit_window_closed");
    for (const one of [sink, restart().sink(address, NO_RIGHT)]) {
      const refusal = (draft: Draft) =>
        one.edit(id, draft, signal).catch(({ kind, shownLength }) => [kind, shownLength]);
      expect(await refusal(finalDraft("One, two, three, four."))).toEqual(["sealed", "One, two, three".length]);
      expect(await refusal(finalDraft("One, two, three"))).toEqual(["sealed", "One, two, three".length]);
      expect(await refusal(finalDraft("Uno, dos, tres, cuatro."))).toEqual(["sealed", 0]);
    }
    expect(texts()).toEqual(["One, two, three"]);
  });

  test("a reply that Slack refuses to edit needs no change if it already shows everything", async () => {
    const { slack, sink } = await startWriting({ streaming: "unknown_method" });
    const { id } = await sink.post(finalDraft("One."), "n", signal);
    slack.setSealed("edit_window_closed");
    expect(await sink.edit(id, finalDraft("One."), signal)).toEqual({});
  });

  test("a posted reply has text for notifications and no previews, and is updated", async () => {
    const { slack, general, question, address, outbound, sink } = await startWriting();
    slack.setStreaming("unknown_method");
    await expect(sink.post(growing("One"), "n", signal)).rejects.toMatchObject({ kind: "unavailable" });
    expect(sink.fallback?.isActive).toBe(true);
    const { id } = await sink.post(growing("One"), "n", signal);
    await sink.edit(id, growing("One <!here>"), signal);
    await sink.edit(id, finalDraft("One <!here> & two", [RETRY]), signal);
    expect(slack.texts(general, question)).toEqual(["One <\u200B!here> & two"]);
    const posted = slack.requests.find(({ method }) => method === "chat.postMessage");
    expect(posted?.args).toMatchObject({ text: "One", unfurl_links: "false", unfurl_media: "false" });
    expect(outbound.sink(address, NO_RIGHT).fallback?.isActive).toBe(true);
  });

  test("a reply that was planned as a stream waits for its turn to post if the workspace has no streams", async () => {
    const { address, outbound, calls } = await startDesk({ streaming: "unknown_method" });
    const [first, second] = [outbound.sink(address, NO_RIGHT), outbound.sink(address, NO_RIGHT)];
    await expect(first.post(growing("One"), "1", signal)).rejects.toMatchObject({ kind: "unavailable" });
    await expect(second.post(growing("Two"), "2", signal)).rejects.toMatchObject({ kind: "unavailable" });
    expect(second.fallback?.isActive).toBe(true);
    expect(calls("chat.startStream") + calls("chat.postMessage")).toBe(1);
    await second.post(growing("Two"), "2", signal);
    expect(calls("chat.postMessage")).toBe(1);
  });
});

const words = fc.array(fc.constantFrom("tea", "harbour", "日本語の文", "because", "the lighthouse,", "naïve"), {
  minLength: 5,
  maxLength: 60,
});
const sentence = words.map((all) => `${all.join(" ")}.`);
const lines = fc.array(sentence, { minLength: 2, maxLength: 12 });
const block = fc.oneof(
  sentence,
  sentence.map((text) => `## ${text.slice(0, 40)}`),
  lines.map((all) => all.map((text) => `- ${text}`).join("\n")),
  lines.map((all) => all.map((text, index) => `${index + 1}. ${text}`).join("\n\n")),
  lines.map((all) => `\`\`\`ts\n${all.join("\n\n")}\n\`\`\``),
  lines.map((all) => `| a | b |\n|---|---|\n${all.map((text) => `| ${text.slice(0, 30)} | x |`).join("\n")}`),
);
const answer = fc.array(block, { minLength: 25, maxLength: 60 }).map((blocks) => blocks.join("\n\n"));

test("text that a stream has shown in a message stays in that message", () => {
  fc.assert(
    fc.property(answer, fc.integer({ min: 20, max: 400 }), (text, step) => {
      const { maxLength, lengthOf, keptLength } = LIMITS;
      const splitter = createSplitter({ maxLength: maxLength - 16, lengthOf, keptLength });
      const shown: string[] = [];
      for (let end = step; end < text.length + step; end += step) {
        const parts = splitter.update(text.slice(0, end).trimEnd());
        for (const [index, { text: finalDraft, closingLength }] of parts.entries()) {
          expect(finalDraft.startsWith(shown[index] ?? "")).toBe(true);
          const source = finalDraft.slice(0, finalDraft.length - closingLength);
          if (index === parts.length - 1) shown[index] = toSettledMarkdown(source);
        }
      }
    }),
    { numRuns: 20, endOnFailure: true },
  );
});

test("the adapter finds a message that another process posted before dying, and does not post it again", async () => {
  const desk = await startDesk();
  // This is also the case after a command, which has no message.
  const { threadId: _thread, replyToId: _question, ...address } = desk.address;
  const draft = finalDraft("Drawing …");
  const { id } = await desk.outbound.sink(address, NO_RIGHT).post(draft, "status", signal);
  const next = desk.restart();
  const again = await next.sink(address, asResumed(NO_RIGHT)).post(draft, "status", signal);
  expect(again.id).toBe(id);
  expect(desk.calls("chat.postMessage")).toBe(1);
});

test.each(["post+update", "stream"])(
  "the adapter finds and resumes a reply to a button press that a dead process started: %s",
  async (way) => {
    const { slack, general, question, address, outbound, restart, calls } = await startDesk();
    if (way === "post+update") slack.setStreaming("unknown_method");
    slack.advance(600_000);
    const { replyToId: _, ...place } = address;
    const pressed = { ...place, since: slack.now() };
    const begin = () => outbound.sink(pressed, NO_RIGHT).post(growing("One"), "n", signal);
    const { id } = await begin().catch(begin);
    slack.advance(5_000);
    const sink = restart().sink(pressed, NO_RIGHT);
    const again = await sink.post(growing("One"), "n", signal);
    expect(again.id).toBe(id);
    await settle(sink, id, finalDraft("One, two."));
    expect(slack.texts(general, question)).toEqual(["One, two."]);
    expect(calls("chat.postMessage") + calls("chat.startStream")).toBe(way === "stream" ? 1 : 2);
  },
);

test("a stream gets no more text from a process after another process took it over and ended it", async () => {
  const { slack, general, question, address, outbound, calls, restart } = await startDesk();
  const under = (value: string) => withFence(NO_RIGHT, { key: "lane", value, check: async () => {} });
  const { id } = await outbound.sink(address, under("1")).post(growing("One"), "n", signal);
  // This process was frozen. Another process continued its stream, and then this one got back the right to write.
  await restart().sink(address, under("2")).edit(id, finalDraft("One, two."), signal);
  const sink = outbound.sink(address, under("3"));
  const draft = finalDraft("One, two, three.");
  expect(await sink.edit(id, growing("One, two, thr"), signal)).toEqual({ isPartial: true });
  await sink.edit(id, draft, signal);
  expect(slack.texts(general, question)).toEqual(["One, two, three."]);
  expect(calls("chat.appendStream")).toBe(0);
});
