import { describe, expect, test } from "vitest";
import { SinkError } from "../../../src/port/errors.ts";
import { NO_RIGHT } from "../../../src/port/right.ts";
import { finalDraft, growing, RETRY, settle, signal, startWriting } from "./writing.ts";

const WHOLE = ["One, two, three."];
const END = finalDraft("One, two, three.", [RETRY]);

/** A stream that shows "One". */
async function startStream() {
  const desk = await startWriting();
  const { id } = await desk.sink.post(growing("One"), "n", signal);
  return { ...desk, id };
}

describe("faults of a stream on Slack", () => {
  test.each([
    ["is found again if its start got no response", { isDone: true, cutsConnection: true }, 1],
    ["is started again if its start was not carried out", { status: 503 }, 2],
  ])("a stream %s", async (_, fault, starts) => {
    const { slack, sink, texts, calls } = await startWriting();
    slack.failNext("chat.startStream", fault);
    await expect(sink.post(growing("One"), "n", signal)).rejects.toMatchObject({ kind: "unavailable" });
    const { id } = await sink.post(growing("One, two"), "n", signal);
    await settle(sink, id, END);
    expect(texts()).toEqual(WHOLE);
    expect(calls("chat.startStream")).toBe(starts);
    if (starts === 2) expect(calls("chat.update")).toBe(0);
  });

  test.each(["chat.startStream", "chat.postMessage"])(
    "a stream is found again if Slack accepted %s without returning its ts",
    async (method) => {
      const { slack, sink, texts } = await startWriting();
      if (method === "chat.postMessage") slack.setStreaming("unknown_method");
      slack.failNext(method, { isDone: true, omits: ["ts", "message", "channel"] });
      let posted: { id: string } | undefined;
      for (let attempt = 0; attempt < 3 && posted === undefined; attempt++)
        posted = await sink.post(growing("One"), "n", signal).catch(() => undefined);
      await settle(sink, posted?.id ?? "", END);
      expect(texts()).toEqual(WHOLE);
    },
  );

  test.each([
    ["chat.appendStream", { error: "some_error_of_tomorrow" }],
    ["chat.stopStream", { error: "some_error_of_tomorrow" }],
    ["chat.appendStream", { error: "msg_too_long" }],
  ])("a stream continues as an updated message if Slack refuses %s with %j", async (method, fault) => {
    const { slack, sink, id, texts } = await startStream();
    slack.failNext(method, fault, 2);
    await settle(sink, id, growing("One, two"));
    await settle(sink, id, END);
    expect(texts()).toEqual(WHOLE);
  });

  test("a stream is not started a second time if the found one cannot be ended", async () => {
    const { slack, sink, texts } = await startWriting();
    slack.failNext("chat.startStream", { isDone: true, cutsConnection: true });
    slack.failNext("chat.stopStream", { error: "some_error_of_tomorrow" });
    await expect(sink.post(growing("One"), "n", signal)).rejects.toMatchObject({ kind: "unavailable" });
    await expect(sink.post(growing("One, two"), "n", signal)).rejects.toBeInstanceOf(SinkError);
    const { id } = await sink.post(growing("One, two"), "n", signal);
    await settle(sink, id, END);
    expect(texts()).toEqual(WHOLE);
  });

  test("a stream never shows the same text twice if it is unknown whether Slack added the text", async () => {
    const { slack, sink, id, texts, calls } = await startStream();
    slack.failNext("chat.appendStream", { isDone: true, status: 502 });
    await expect(sink.edit(id, growing("One, two"), signal)).rejects.toMatchObject({ kind: "unavailable" });
    await settle(sink, id, growing("One, two, th"));
    await settle(sink, id, END);
    expect(texts()).toEqual(WHOLE);
    expect(calls("chat.appendStream")).toBe(1);
  });

  test.each([true, false])(
    "a stream is complete if the response to its end was lost; carried out: %s",
    async (isDone) => {
      const { slack, general, question, sink, id, texts } = await startStream();
      slack.failNext("chat.stopStream", { isDone, cutsConnection: true });
      expect(await settle(sink, id, END)).toHaveLength(1);
      expect(texts()).toEqual(WHOLE);
      const [message] = slack.answers(general, question);
      expect(message?.stream?.state).toBe("completed");
      expect(message?.content.blocks.at(-1)).toMatchObject({ type: "actions" });
    },
  );

  test("a stream continues as an updated message after Slack ended it at five minutes", async () => {
    const { slack, general, question, sink, id, texts } = await startStream();
    const [message] = slack.answers(general, question);
    if (message?.stream !== undefined) Object.assign(message.stream, { state: "errored", endedBy: "expired" });
    await settle(sink, id, growing("One, two"));
    expect(texts()).toEqual(["One, two"]);
    await settle(sink, id, END);
    expect(texts()).toEqual(WHOLE);
  });

  test("a stream ends before Slack's limit, and the reply continues in its message", async () => {
    const { slack, general, question, sink, id, texts } = await startStream();
    slack.advance(241_000);
    await settle(sink, id, growing("One, two"));
    slack.advance(120_000);
    await settle(sink, id, growing("One, two, th"));
    await settle(sink, id, END);
    expect(texts()).toEqual(WHOLE);
    expect(slack.answers(general, question)[0]?.stream?.endedBy).toBe("app");
  });

  test("after a person presses Slack's own Stop, a stream gets only its ending, and no more text", async () => {
    const { ada, question, sink, id, texts } = await startStream();
    ada.stop(question);
    await settle(sink, id, growing("One, two"));
    await settle(sink, id, growing("One, two, three"));
    expect(texts()).toEqual(["One"]);
    await settle(sink, id, finalDraft("One\n\n_Stopped._", [RETRY]));
    expect(texts()).toEqual(["One\n\n_Stopped._"]);
  });

  test("a stream waits as long as Slack says, by header or by code", async () => {
    const { slack, sink, id, texts, calls } = await startStream();
    slack.failNext("chat.appendStream", { retryAfterS: 7 });
    await expect(sink.edit(id, growing("One, two"), signal)).rejects.toMatchObject({ retryAfterMs: 7_000 });
    slack.failNext("chat.appendStream", { error: "ratelimited" });
    await expect(sink.edit(id, growing("One, two"), signal)).rejects.toMatchObject({ kind: "rate-limited" });
    await settle(sink, id, END);
    expect(calls("chat.update")).toBe(0);
    expect(texts()).toEqual(WHOLE);
  });

  test("a stream ends if the token is revoked, and no more calls use that token", async () => {
    const { slack, api, sink, id, calls } = await startStream();
    await api.settled();
    slack.revoke();
    const refusal = { kind: "forbidden", message: expect.stringMatching(/Install the app/) };
    for (const text of ["One, two", "One, two 1"])
      await expect(sink.edit(id, growing(text), signal)).rejects.toMatchObject(refusal);
    expect(calls("chat.appendStream")).toBe(1);
  });
});

describe("a channel or workspace on Slack without streams", () => {
  test.each(["unknown_method", "http404"] as const)("a workspace without streams is remembered: %s", async (way) => {
    const { sink, outbound, address, texts, calls } = await startWriting({ streaming: way });
    await expect(sink.post(growing("One"), "n", signal)).rejects.toMatchObject({ kind: "unavailable" });
    const { id } = await sink.post(growing("One"), "n", signal);
    await settle(sink, id, END);
    await outbound.sink(address, NO_RIGHT).post(growing("Another"), "m", signal);
    expect(calls("chat.startStream")).toBe(1);
    expect(texts()).toEqual([...WHOLE, "Another"]);
  });

  test("a reply is posted and updated if streams are restricted and posts are not", async () => {
    const { slack, sink, texts } = await startWriting();
    slack.failNext("chat.startStream", { error: "restricted_action" });
    await expect(sink.post(growing("One"), "n", signal)).rejects.toMatchObject({ kind: "unavailable" });
    await sink.post(finalDraft("One"), "n", signal);
    expect(texts()).toEqual(["One"]);
  });

  test("a channel without streams is remembered for that channel only", async () => {
    const { slack, ada, sink, outbound, address } = await startWriting();
    slack.failNext("chat.startStream", { error: "channel_type_not_supported" });
    await expect(sink.post(growing("One"), "n", signal)).rejects.toThrow(SinkError);
    const isFallback = (channelId: string) => outbound.sink({ ...address, channelId }, NO_RIGHT).fallback?.isActive;
    expect([address.channelId, ada.direct().id].map(isFallback)).toEqual([true, false]);
  });

  test("a reply outside threads, or to no one in particular in a channel, is posted and updated", async () => {
    const { address, outbound } = await startWriting();
    const { threadId: _, ...outside } = address;
    const { user: _user, ...extra } = address.extra ?? {};
    const isFallback = (place: typeof outside) => outbound.sink(place, NO_RIGHT).fallback?.isActive;
    expect([outside, { ...address, extra }].map(isFallback)).toEqual([true, true]);
  });
});

describe("the meaning of Slack's refusals", () => {
  test.each([
    ["not_in_channel", "forbidden", /\/invite/],
    ["is_archived", "forbidden", /archived/],
    ["channel_not_found", "gone", /private/],
    ["restricted_action_read_only_channel", "forbidden", /admin/],
    ["msg_too_long", "rejected", /longer/],
    ["account_inactive", "forbidden", /Install/],
    ["missing_scope", "forbidden", /scope/],
    ["fatal_error", "unavailable", /fatal_error/],
    ["unknown_method", "forbidden", /unknown_method/],
    ["thread_not_found", "gone", /thread/],
    ["something_new", "rejected", /something_new/],
  ])("a refusal of Slack explains %s", async (error, kind, words) => {
    const { slack, sink } = await startWriting();
    slack.failNext("chat.postMessage", { error });
    const message = expect.stringMatching(words);
    await expect(sink.post(finalDraft("One"), "n", signal)).rejects.toMatchObject({ kind, message });
  });

  test("the adapter does not take a proxy's page for a refusal by Slack", async () => {
    const { slack, sink } = await startWriting();
    slack.failNext("chat.postMessage", { html: "<html>busy</html>" });
    await expect(sink.post(finalDraft("One"), "n", signal)).rejects.toMatchObject({ kind: "unavailable" });
  });
});

describe("a reply that another process started", () => {
  test("the adapter resumes a reply with an open stream", async () => {
    const { slack, general, question, address, id, restart, texts } = await startStream();
    const sink = restart().sink(address, NO_RIGHT);
    await settle(sink, id, growing("One, tw"));
    await settle(sink, id, END);
    expect(texts()).toEqual(WHOLE);
    expect(slack.answers(general, question)[0]?.stream?.state).toBe("completed");
  });

  test.each(["on", "unknown_method"] as const)(
    "without a record of a reply, the adapter finds the reply by its nonce; streaming: %s",
    async (streaming) => {
      const { sink: before, address, restart, texts } = await startWriting({ streaming });
      const begin = () => before.post(growing("One"), "n", signal);
      const { id } = await begin().catch(begin);
      const sink = restart().sink(address, NO_RIGHT);
      expect((await sink.post(growing("One, two"), "n", signal)).id).toBe(id);
      await settle(sink, id, END);
      expect(texts()).toEqual(WHOLE);
    },
  );

  test("the adapter finds a finished reply by its nonce, and does not take another message for it", async () => {
    const { sink: before, address, id, restart, texts } = await startStream();
    await settle(before, id, finalDraft("One."));
    const sink = restart().sink(address, NO_RIGHT);
    expect((await sink.post(finalDraft("One."), "n", signal)).id).toBe(id);
    expect((await sink.post(finalDraft("Two."), "n:1", signal)).id).not.toBe(id);
    expect(texts()).toEqual(["One.", "Two."]);
  });

  test("the adapter finds a reply that Slack posted without a response, and posts no other while Slack allows no lookup", async () => {
    const { slack, sink, texts, calls } = await startWriting();
    slack.failNext("chat.postMessage", { isDone: true, status: 504 });
    for (const isFirst of [true, false, false, false]) {
      await expect(sink.post(finalDraft("One"), "n", signal)).rejects.toMatchObject({ kind: "unavailable" });
      if (isFirst) slack.failNext("conversations.replies", { retryAfterS: 60 });
    }
    expect(calls("conversations.replies")).toBe(2);
    slack.advance(61_000);
    await sink.post(finalDraft("One"), "n", signal);
    expect(texts()).toEqual(["One"]);
  });
});
