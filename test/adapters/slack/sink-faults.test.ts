import { describe, expect, test } from "vitest";
import { SinkError } from "../../../src/port/errors.ts";
import { NO_RIGHT } from "../../../src/port/right.ts";
import type { Draft, ReplySink } from "../../../src/port/sink.ts";
import { type Desk, finalDraft, growing, RETRY, startDesk } from "./writing.ts";

const signal = new AbortController().signal;
const END = finalDraft("One, two, three.", [RETRY]);

/** Retries a draft until it is visible, as the core does. */
async function settle(sink: ReplySink, id: string, draft: Draft): Promise<SinkError[]> {
  const errors: SinkError[] = [];
  for (let attempt = 0; attempt < 6; attempt++) {
    try {
      const { isPartial = false } = await sink.edit(id, draft, signal);
      if (!isPartial) return errors;
    } catch (error) {
      if (!(error instanceof SinkError) || error.kind !== "unavailable") throw error;
      errors.push(error);
    }
  }
  throw new Error("The draft was never written.");
}

function shown({ slack, general, question }: Desk): string[] {
  return slack.texts(general, question);
}

describe("faults of a stream on Slack", () => {
  test("a stream whose start got no response is found again", async () => {
    const desk = await startDesk();
    const sink = desk.outbound.sink(desk.address, NO_RIGHT);
    desk.slack.failNext("chat.startStream", { isDone: true, cutsConnection: true });
    await expect(sink.post(growing("One"), "n", signal)).rejects.toMatchObject({ kind: "unavailable" });
    const { id } = await sink.post(growing("One, two"), "n", signal);
    await settle(sink, id, END);
    expect(shown(desk)).toEqual(["One, two, three."]);
  });

  test.each(["chat.startStream", "chat.postMessage"])(
    "a stream is found again if Slack accepted %s without returning its ts",
    async (method) => {
      const desk = await startDesk();
      if (method === "chat.postMessage") desk.slack.setStreaming("unknown_method");
      const sink = desk.outbound.sink(desk.address, NO_RIGHT);
      desk.slack.failNext(method, { isDone: true, omits: ["ts", "message", "channel"] });
      const post = () => sink.post(growing("One"), "n", signal);
      let posted: { id: string } | undefined;
      for (let attempt = 0; attempt < 3 && posted === undefined; attempt++)
        posted = await post().catch(() => undefined);
      await settle(sink, posted?.id ?? "", END);
      expect(shown(desk)).toEqual(["One, two, three."]);
    },
  );

  test.each(["chat.appendStream", "chat.stopStream"])(
    "a stream continues as an updated message if Slack refuses %s for an unknown reason",
    async (method) => {
      const desk = await startDesk();
      const sink = desk.outbound.sink(desk.address, NO_RIGHT);
      const { id } = await sink.post(growing("One"), "n", signal);
      desk.slack.failNext(method, { error: "some_error_of_tomorrow" }, 2);
      await settle(sink, id, growing("One, two"));
      await settle(sink, id, END);
      expect(shown(desk)).toEqual(["One, two, three."]);
    },
  );

  test("a stream is not started a second time if the found one cannot be ended", async () => {
    const desk = await startDesk();
    const sink = desk.outbound.sink(desk.address, NO_RIGHT);
    desk.slack.failNext("chat.startStream", { isDone: true, cutsConnection: true });
    desk.slack.failNext("chat.stopStream", { error: "some_error_of_tomorrow" });
    await expect(sink.post(growing("One"), "n", signal)).rejects.toMatchObject({ kind: "unavailable" });
    await expect(sink.post(growing("One, two"), "n", signal)).rejects.toBeInstanceOf(SinkError);
    const { id } = await sink.post(growing("One, two"), "n", signal);
    await settle(sink, id, END);
    expect(shown(desk)).toEqual(["One, two, three."]);
  });

  test("a stream is started again if its start was not carried out", async () => {
    const desk = await startDesk();
    const sink = desk.outbound.sink(desk.address, NO_RIGHT);
    desk.slack.failNext("chat.startStream", { status: 503 });
    await expect(sink.post(growing("One"), "n", signal)).rejects.toMatchObject({ kind: "unavailable" });
    const { id } = await sink.post(growing("One, two"), "n", signal);
    await settle(sink, id, END);
    expect(shown(desk)).toEqual(["One, two, three."]);
    expect(desk.calls("chat.update")).toBe(0);
  });

  test("a stream never shows the same text twice if it is unknown whether Slack added the text", async () => {
    const desk = await startDesk();
    const sink = desk.outbound.sink(desk.address, NO_RIGHT);
    const { id } = await sink.post(growing("One"), "n", signal);
    desk.slack.failNext("chat.appendStream", { isDone: true, status: 502 });
    await expect(sink.edit(id, growing("One, two"), signal)).rejects.toMatchObject({ kind: "unavailable" });
    await settle(sink, id, growing("One, two, th"));
    await settle(sink, id, END);
    expect(shown(desk)).toEqual(["One, two, three."]);
    expect(desk.calls("chat.appendStream")).toBe(1);
  });

  for (const isDone of [true, false]) {
    test(`a stream is complete if the response to its end was lost and it was ${isDone ? "" : "not "}carried out`, async () => {
      const desk = await startDesk();
      const sink = desk.outbound.sink(desk.address, NO_RIGHT);
      const { id } = await sink.post(growing("One"), "n", signal);
      desk.slack.failNext("chat.stopStream", { isDone, cutsConnection: true });
      expect(await settle(sink, id, END)).toHaveLength(1);
      expect(shown(desk)).toEqual(["One, two, three."]);
      const [message] = desk.slack.answers(desk.general, desk.question);
      expect(message?.stream?.state).toBe("completed");
      expect(message?.content.blocks.at(-1)).toMatchObject({ type: "actions" });
    });
  }

  test("a stream continues as an updated message after Slack ended it at five minutes", async () => {
    const desk = await startDesk();
    const sink = desk.outbound.sink(desk.address, NO_RIGHT);
    const { id } = await sink.post(growing("One"), "n", signal);
    const [message] = desk.slack.answers(desk.general, desk.question);
    if (message?.stream !== undefined) Object.assign(message.stream, { state: "errored", endedBy: "expired" });
    await settle(sink, id, growing("One, two"));
    expect(shown(desk)).toEqual(["One, two"]);
    await settle(sink, id, END);
    expect(shown(desk)).toEqual(["One, two, three."]);
  });

  test("a stream ends before Slack's limit, and the reply continues in its message", async () => {
    const desk = await startDesk();
    const sink = desk.outbound.sink(desk.address, NO_RIGHT);
    const { id } = await sink.post(growing("One"), "n", signal);
    desk.slack.advance(241_000);
    await settle(sink, id, growing("One, two"));
    desk.slack.advance(120_000);
    await settle(sink, id, growing("One, two, th"));
    await settle(sink, id, END);
    expect(shown(desk)).toEqual(["One, two, three."]);
    expect(desk.slack.answers(desk.general, desk.question)[0]?.stream?.endedBy).toBe("app");
  });

  test("after a person presses Slack's own Stop, a stream gets only its ending, and no more text", async () => {
    const desk = await startDesk();
    const sink = desk.outbound.sink(desk.address, NO_RIGHT);
    const { id } = await sink.post(growing("One"), "n", signal);
    desk.ada.stop(desk.question);
    await settle(sink, id, growing("One, two"));
    await settle(sink, id, growing("One, two, three"));
    expect(shown(desk)).toEqual(["One"]);
    await settle(sink, id, finalDraft("One\n\n_Stopped._", [RETRY]));
    expect(shown(desk)).toEqual(["One\n\n_Stopped._"]);
  });

  test("a stream continues as an updated message if Slack accepts no more text in it", async () => {
    const desk = await startDesk();
    const sink = desk.outbound.sink(desk.address, NO_RIGHT);
    const { id } = await sink.post(growing("One"), "n", signal);
    desk.slack.failNext("chat.appendStream", { error: "msg_too_long" });
    await settle(sink, id, growing("One, two"));
    await settle(sink, id, END);
    expect(shown(desk)).toEqual(["One, two, three."]);
  });

  test("a stream continues as an updated message if the text was rewritten", async () => {
    const desk = await startDesk();
    const sink = desk.outbound.sink(desk.address, NO_RIGHT);
    const { id } = await sink.post(growing("Once upon"), "n", signal);
    await settle(sink, id, growing("In short"));
    expect(shown(desk)).toEqual(["In short"]);
    await settle(sink, id, END);
    expect(shown(desk)).toEqual(["One, two, three."]);
  });

  test("a stream waits as long as Slack says, by header or by code", async () => {
    const desk = await startDesk();
    const sink = desk.outbound.sink(desk.address, NO_RIGHT);
    const { id } = await sink.post(growing("One"), "n", signal);
    desk.slack.failNext("chat.appendStream", { retryAfterS: 7 });
    await expect(sink.edit(id, growing("One, two"), signal)).rejects.toMatchObject({ retryAfterMs: 7_000 });
    desk.slack.failNext("chat.appendStream", { error: "ratelimited" });
    await expect(sink.edit(id, growing("One, two"), signal)).rejects.toMatchObject({ kind: "rate-limited" });
    await settle(sink, id, END);
    expect(desk.calls("chat.update")).toBe(0);
    expect(shown(desk)).toEqual(["One, two, three."]);
  });

  test("a stream ends if the token is revoked, and no more calls use that token", async () => {
    const desk = await startDesk();
    const sink = desk.outbound.sink(desk.address, NO_RIGHT);
    const { id } = await sink.post(growing("One"), "n", signal);
    await desk.api.settled();
    desk.slack.revoke();
    for (let attempt = 0; attempt < 3; attempt++) {
      const writing = sink.edit(id, growing(`One, two ${attempt}`), signal);
      await expect(writing).rejects.toMatchObject({
        kind: "forbidden",
        message: expect.stringMatching(/Install the app/),
      });
    }
    expect(desk.calls("chat.appendStream")).toBe(1);
  });
});

describe("a channel or workspace on Slack without streams", () => {
  for (const streaming of ["unknown_method", "http404"] as const) {
    test(`a workspace without streams is remembered: ${streaming}`, async () => {
      const desk = await startDesk();
      desk.slack.setStreaming(streaming);
      const sink = desk.outbound.sink(desk.address, NO_RIGHT);
      await expect(sink.post(growing("One"), "n", signal)).rejects.toMatchObject({ kind: "unavailable" });
      const { id } = await sink.post(growing("One"), "n", signal);
      await settle(sink, id, END);
      const next = desk.outbound.sink(desk.address, NO_RIGHT);
      await next.post(growing("Another"), "m", signal);
      expect(desk.calls("chat.startStream")).toBe(1);
      expect(shown(desk)).toEqual(["One, two, three.", "Another"]);
    });
  }

  test("a reply is posted and updated if streams are restricted and posts are not", async () => {
    const desk = await startDesk();
    const sink = desk.outbound.sink(desk.address, NO_RIGHT);
    desk.slack.failNext("chat.startStream", { error: "restricted_action" });
    await expect(sink.post(growing("One"), "n", signal)).rejects.toMatchObject({ kind: "unavailable" });
    await sink.post(finalDraft("One"), "n", signal);
    expect(shown(desk)).toEqual(["One"]);
  });

  test("a channel without streams is remembered for that channel only", async () => {
    const desk = await startDesk();
    desk.slack.failNext("chat.startStream", { error: "channel_type_not_supported" });
    await expect(desk.outbound.sink(desk.address, NO_RIGHT).post(growing("One"), "n", signal)).rejects.toThrow(
      SinkError,
    );
    expect(desk.outbound.sink(desk.address, NO_RIGHT).fallback?.isActive).toBe(true);
    const elsewhere = { ...desk.address, channelId: desk.ada.direct().id };
    expect(desk.outbound.sink(elsewhere, NO_RIGHT).fallback?.isActive).toBe(false);
  });

  test("a reply outside threads, or to no one in particular in a channel, is posted and updated", async () => {
    const { address, outbound } = await startDesk();
    const { threadId: _, ...outside } = address;
    const { user: _user, ...rest } = address.extra ?? {};
    expect(outbound.sink(outside, NO_RIGHT).fallback?.isActive).toBe(true);
    expect(outbound.sink({ ...address, extra: rest }, NO_RIGHT).fallback?.isActive).toBe(true);
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
    ["something_new", "rejected", /something_new/],
  ])("a refusal of Slack explains %s", async (error, kind, words) => {
    const { slack, address, outbound } = await startDesk();
    slack.failNext("chat.postMessage", { error });
    const posting = outbound.sink(address, NO_RIGHT).post(finalDraft("One"), "n", signal);
    await expect(posting).rejects.toMatchObject({ kind, message: expect.stringMatching(words) });
  });

  test("the adapter does not take a proxy's page for a refusal by Slack", async () => {
    const { slack, address, outbound } = await startDesk();
    slack.failNext("chat.postMessage", { html: "<html>busy</html>" });
    await expect(outbound.sink(address, NO_RIGHT).post(finalDraft("One"), "n", signal)).rejects.toMatchObject({
      kind: "unavailable",
    });
  });
});

describe("a reply that another process started", () => {
  test("the adapter resumes a reply with an open stream", async () => {
    const desk = await startDesk();
    const { id } = await desk.outbound.sink(desk.address, NO_RIGHT).post(growing("One"), "n", signal);
    const sink = desk.restart().sink(desk.address, NO_RIGHT);
    await settle(sink, id, growing("One, tw"));
    await settle(sink, id, END);
    expect(shown(desk)).toEqual(["One, two, three."]);
    expect(desk.slack.answers(desk.general, desk.question)[0]?.stream?.state).toBe("completed");
  });

  for (const isNative of [true, false]) {
    test(`without a record of a reply, the adapter finds the reply by its nonce, ${isNative ? "native" : "fallback"}`, async () => {
      const desk = await startDesk();
      if (!isNative) desk.slack.setStreaming("unknown_method");
      const before = desk.outbound.sink(desk.address, NO_RIGHT);
      if (!isNative) await before.post(growing("One"), "n", signal).catch(() => {});
      const { id } = await before.post(growing("One"), "n", signal);
      const sink = desk.restart().sink(desk.address, NO_RIGHT);
      expect((await sink.post(growing("One, two"), "n", signal)).id).toBe(id);
      await settle(sink, id, END);
      expect(shown(desk)).toEqual(["One, two, three."]);
    });
  }

  test("the adapter finds a finished reply by its nonce, and does not take another message for it", async () => {
    const desk = await startDesk();
    const before = desk.outbound.sink(desk.address, NO_RIGHT);
    const { id } = await before.post(growing("One"), "n:0", signal);
    await settle(before, id, finalDraft("One."));
    const sink = desk.restart().sink(desk.address, NO_RIGHT);
    expect((await sink.post(finalDraft("One."), "n:0", signal)).id).toBe(id);
    expect((await sink.post(finalDraft("Two."), "n:1", signal)).id).not.toBe(id);
    expect(shown(desk)).toEqual(["One.", "Two."]);
  });

  test("the adapter finds a reply that Slack posted without returning a response", async () => {
    const desk = await startDesk();
    const sink = desk.outbound.sink(desk.address, NO_RIGHT);
    desk.slack.failNext("chat.postMessage", { isDone: true, status: 504 });
    await expect(sink.post(finalDraft("One"), "n", signal)).rejects.toMatchObject({ kind: "unavailable" });
    await sink.post(finalDraft("One"), "n", signal);
    expect(shown(desk)).toEqual(["One"]);
  });

  test("the adapter does not post a reply a second time while Slack allows no lookup", async () => {
    const desk = await startDesk();
    const sink = desk.outbound.sink(desk.address, NO_RIGHT);
    desk.slack.failNext("chat.postMessage", { isDone: true, status: 504 });
    await expect(sink.post(finalDraft("One"), "n", signal)).rejects.toMatchObject({ kind: "unavailable" });
    desk.slack.failNext("conversations.replies", { retryAfterS: 60 });
    for (const _ of [1, 2, 3]) {
      await expect(sink.post(finalDraft("One"), "n", signal)).rejects.toMatchObject({ kind: "unavailable" });
    }
    expect(desk.calls("conversations.replies")).toBe(2);
    desk.slack.advance(61_000);
    await sink.post(finalDraft("One"), "n", signal);
    expect(shown(desk)).toEqual(["One"]);
  });
});
