import { describe, expect, test } from "vitest";
import { SinkError } from "../../../src/port/errors.ts";
import type { Draft, ReplySink } from "../../../src/port/sink.ts";
import { type Desk, finalDraft, growing, RETRY, startDesk } from "./writing.ts";

const signal = new AbortController().signal;
const END = finalDraft("One, two, three.", [RETRY]);

/** Writes a draft until it stands there, as the core does. */
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

describe("a stream on Slack that goes wrong", () => {
  test("is found again when the answer to its start was lost", async () => {
    const desk = await startDesk();
    const sink = desk.outbound.sink(desk.address);
    desk.slack.failNext("chat.startStream", { isDone: true, cutsConnection: true });
    await expect(sink.post(growing("One"), "n", signal)).rejects.toMatchObject({ kind: "unavailable" });
    const { id } = await sink.post(growing("One, two"), "n", signal);
    await settle(sink, id, END);
    expect(shown(desk)).toEqual(["One, two, three."]);
  });

  test.each(["chat.startStream", "chat.postMessage"])(
    "is found again when Slack took %s and does not say which message it made",
    async (method) => {
      const desk = await startDesk();
      if (method === "chat.postMessage") desk.slack.setStreaming("unknown_method");
      const sink = desk.outbound.sink(desk.address);
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
    "goes on as a message that is updated when Slack refuses %s for a reason nobody knows",
    async (method) => {
      const desk = await startDesk();
      const sink = desk.outbound.sink(desk.address);
      const { id } = await sink.post(growing("One"), "n", signal);
      desk.slack.failNext(method, { error: "some_error_of_tomorrow" }, 2);
      await settle(sink, id, growing("One, two"));
      await settle(sink, id, END);
      expect(shown(desk)).toEqual(["One, two, three."]);
    },
  );

  test("is not begun a second time when the found one cannot be ended", async () => {
    const desk = await startDesk();
    const sink = desk.outbound.sink(desk.address);
    desk.slack.failNext("chat.startStream", { isDone: true, cutsConnection: true });
    desk.slack.failNext("chat.stopStream", { error: "some_error_of_tomorrow" });
    await expect(sink.post(growing("One"), "n", signal)).rejects.toMatchObject({ kind: "unavailable" });
    await expect(sink.post(growing("One, two"), "n", signal)).rejects.toBeInstanceOf(SinkError);
    const { id } = await sink.post(growing("One, two"), "n", signal);
    await settle(sink, id, END);
    expect(shown(desk)).toEqual(["One, two, three."]);
  });

  test("is started again when its start was not carried out", async () => {
    const desk = await startDesk();
    const sink = desk.outbound.sink(desk.address);
    desk.slack.failNext("chat.startStream", { status: 503 });
    await expect(sink.post(growing("One"), "n", signal)).rejects.toMatchObject({ kind: "unavailable" });
    const { id } = await sink.post(growing("One, two"), "n", signal);
    await settle(sink, id, END);
    expect(shown(desk)).toEqual(["One, two, three."]);
    expect(desk.calls("chat.update")).toBe(0);
  });

  test("never gets the same text twice when nobody knows whether it was added", async () => {
    const desk = await startDesk();
    const sink = desk.outbound.sink(desk.address);
    const { id } = await sink.post(growing("One"), "n", signal);
    desk.slack.failNext("chat.appendStream", { isDone: true, status: 502 });
    await expect(sink.edit(id, growing("One, two"), signal)).rejects.toMatchObject({ kind: "unavailable" });
    await settle(sink, id, growing("One, two, th"));
    await settle(sink, id, END);
    expect(shown(desk)).toEqual(["One, two, three."]);
    expect(desk.calls("chat.appendStream")).toBe(1);
  });

  for (const isDone of [true, false]) {
    test(`is whole when the answer to its end was lost and it was ${isDone ? "" : "not "}carried out`, async () => {
      const desk = await startDesk();
      const sink = desk.outbound.sink(desk.address);
      const { id } = await sink.post(growing("One"), "n", signal);
      desk.slack.failNext("chat.stopStream", { isDone, cutsConnection: true });
      expect(await settle(sink, id, END)).toHaveLength(1);
      expect(shown(desk)).toEqual(["One, two, three."]);
      const [message] = desk.slack.answers(desk.general, desk.question);
      expect(message?.stream?.state).toBe("completed");
      expect(message?.content.blocks.at(-1)).toMatchObject({ type: "actions" });
    });
  }

  test("goes on as an update when Slack has ended it after five minutes", async () => {
    const desk = await startDesk();
    const sink = desk.outbound.sink(desk.address);
    const { id } = await sink.post(growing("One"), "n", signal);
    const [message] = desk.slack.answers(desk.general, desk.question);
    if (message?.stream !== undefined) Object.assign(message.stream, { state: "errored", endedBy: "expired" });
    await settle(sink, id, growing("One, two"));
    expect(shown(desk)).toEqual(["One, two"]);
    await settle(sink, id, END);
    expect(shown(desk)).toEqual(["One, two, three."]);
  });

  test("is ended before Slack does, and the message goes on in its place", async () => {
    const desk = await startDesk();
    const sink = desk.outbound.sink(desk.address);
    const { id } = await sink.post(growing("One"), "n", signal);
    desk.slack.advance(241_000);
    await settle(sink, id, growing("One, two"));
    desk.slack.advance(120_000);
    await settle(sink, id, growing("One, two, th"));
    await settle(sink, id, END);
    expect(shown(desk)).toEqual(["One, two, three."]);
    expect(desk.slack.answers(desk.general, desk.question)[0]?.stream?.endedBy).toBe("app");
  });

  test("gets no more text once somebody has pressed Slack's own Stop, and then its ending", async () => {
    const desk = await startDesk();
    const sink = desk.outbound.sink(desk.address);
    const { id } = await sink.post(growing("One"), "n", signal);
    desk.ada.stop(desk.question);
    await settle(sink, id, growing("One, two"));
    await settle(sink, id, growing("One, two, three"));
    expect(shown(desk)).toEqual(["One"]);
    await settle(sink, id, finalDraft("One\n\n_Stopped._", [RETRY]));
    expect(shown(desk)).toEqual(["One\n\n_Stopped._"]);
  });

  test("goes on as an update when Slack takes no more text into it", async () => {
    const desk = await startDesk();
    const sink = desk.outbound.sink(desk.address);
    const { id } = await sink.post(growing("One"), "n", signal);
    desk.slack.failNext("chat.appendStream", { error: "msg_too_long" });
    await settle(sink, id, growing("One, two"));
    await settle(sink, id, END);
    expect(shown(desk)).toEqual(["One, two, three."]);
  });

  test("goes on as an update when the text was written anew", async () => {
    const desk = await startDesk();
    const sink = desk.outbound.sink(desk.address);
    const { id } = await sink.post(growing("Once upon"), "n", signal);
    await settle(sink, id, growing("In short"));
    expect(shown(desk)).toEqual(["In short"]);
    await settle(sink, id, END);
    expect(shown(desk)).toEqual(["One, two, three."]);
  });

  test("waits as long as Slack says, by header or by code", async () => {
    const desk = await startDesk();
    const sink = desk.outbound.sink(desk.address);
    const { id } = await sink.post(growing("One"), "n", signal);
    desk.slack.failNext("chat.appendStream", { retryAfterS: 7 });
    await expect(sink.edit(id, growing("One, two"), signal)).rejects.toMatchObject({ retryAfterMs: 7_000 });
    desk.slack.failNext("chat.appendStream", { error: "ratelimited" });
    await expect(sink.edit(id, growing("One, two"), signal)).rejects.toMatchObject({ kind: "rate-limited" });
    await settle(sink, id, END);
    expect(desk.calls("chat.update")).toBe(0);
    expect(shown(desk)).toEqual(["One, two, three."]);
  });

  test("ends when the token is revoked, and no call is made with it any more", async () => {
    const desk = await startDesk();
    const sink = desk.outbound.sink(desk.address);
    const { id } = await sink.post(growing("One"), "n", signal);
    await desk.api.settled();
    desk.slack.revoke();
    for (let attempt = 0; attempt < 3; attempt++) {
      const writing = sink.edit(id, growing(`One, two ${attempt}`), signal);
      await expect(writing).rejects.toMatchObject({
        kind: "forbidden",
        message: expect.stringMatching(/install the app/),
      });
    }
    expect(desk.calls("chat.appendStream")).toBe(1);
  });
});

describe("a place on Slack without streams", () => {
  for (const streaming of ["unknown_method", "http404"] as const) {
    test(`is remembered by its workspace: ${streaming}`, async () => {
      const desk = await startDesk();
      desk.slack.setStreaming(streaming);
      const sink = desk.outbound.sink(desk.address);
      await expect(sink.post(growing("One"), "n", signal)).rejects.toMatchObject({ kind: "unavailable" });
      const { id } = await sink.post(growing("One"), "n", signal);
      await settle(sink, id, END);
      const next = desk.outbound.sink(desk.address);
      await next.post(growing("Another"), "m", signal);
      expect(desk.calls("chat.startStream")).toBe(1);
      expect(shown(desk)).toEqual(["One, two, three.", "Another"]);
    });
  }

  test("is the way of a reply whose stream is restricted where posts are not", async () => {
    const desk = await startDesk();
    const sink = desk.outbound.sink(desk.address);
    desk.slack.failNext("chat.startStream", { error: "restricted_action" });
    await expect(sink.post(growing("One"), "n", signal)).rejects.toMatchObject({ kind: "unavailable" });
    await sink.post(finalDraft("One"), "n", signal);
    expect(shown(desk)).toEqual(["One"]);
  });

  test("is remembered by its channel where only the channel has none", async () => {
    const desk = await startDesk();
    desk.slack.failNext("chat.startStream", { error: "channel_type_not_supported" });
    await expect(desk.outbound.sink(desk.address).post(growing("One"), "n", signal)).rejects.toThrow(SinkError);
    expect(desk.outbound.sink(desk.address).fallback?.isActive).toBe(true);
    const elsewhere = { ...desk.address, channelId: desk.ada.direct().id };
    expect(desk.outbound.sink(elsewhere).fallback?.isActive).toBe(false);
  });

  test("is a reply outside threads, and one in a channel to nobody in particular", async () => {
    const { address, outbound } = await startDesk();
    const { threadId: _, ...outside } = address;
    const { user: _user, ...rest } = address.extra ?? {};
    expect(outbound.sink(outside).fallback?.isActive).toBe(true);
    expect(outbound.sink({ ...address, extra: rest }).fallback?.isActive).toBe(true);
  });
});

describe("a refusal of Slack", () => {
  test.each([
    ["not_in_channel", "forbidden", /\/invite/],
    ["is_archived", "forbidden", /archived/],
    ["channel_not_found", "gone", /private/],
    ["restricted_action_read_only_channel", "forbidden", /administrator/],
    ["msg_too_long", "rejected", /longer/],
    ["account_inactive", "forbidden", /install/],
    ["missing_scope", "forbidden", /scope/],
    ["fatal_error", "unavailable", /fatal_error/],
    ["something_new", "rejected", /something_new/],
  ])("says what %s means", async (error, kind, words) => {
    const { slack, address, outbound } = await startDesk();
    slack.failNext("chat.postMessage", { error });
    const posting = outbound.sink(address).post(finalDraft("One"), "n", signal);
    await expect(posting).rejects.toMatchObject({ kind, message: expect.stringMatching(words) });
  });

  test("is no refusal when it is a proxy's page", async () => {
    const { slack, address, outbound } = await startDesk();
    slack.failNext("chat.postMessage", { html: "<html>busy</html>" });
    await expect(outbound.sink(address).post(finalDraft("One"), "n", signal)).rejects.toMatchObject({
      kind: "unavailable",
    });
  });
});

describe("a reply that another process began", () => {
  test("is taken up where its stream was left open", async () => {
    const desk = await startDesk();
    const { id } = await desk.outbound.sink(desk.address).post(growing("One"), "n", signal);
    const sink = desk.restart().sink(desk.address);
    await settle(sink, id, growing("One, tw"));
    await settle(sink, id, END);
    expect(shown(desk)).toEqual(["One, two, three."]);
    expect(desk.slack.answers(desk.general, desk.question)[0]?.stream?.state).toBe("completed");
  });

  for (const isNative of [true, false]) {
    test(`is found by its nonce when its record was lost, ${isNative ? "native" : "fallback"}`, async () => {
      const desk = await startDesk();
      if (!isNative) desk.slack.setStreaming("unknown_method");
      const before = desk.outbound.sink(desk.address);
      if (!isNative) await before.post(growing("One"), "n", signal).catch(() => {});
      const { id } = await before.post(growing("One"), "n", signal);
      const sink = desk.restart().sink(desk.address);
      expect((await sink.post(growing("One, two"), "n", signal)).id).toBe(id);
      await settle(sink, id, END);
      expect(shown(desk)).toEqual(["One, two, three."]);
    });
  }

  test("is found by its nonce when it was finished, and a further message is not taken for it", async () => {
    const desk = await startDesk();
    const before = desk.outbound.sink(desk.address);
    const { id } = await before.post(growing("One"), "n:0", signal);
    await settle(before, id, finalDraft("One."));
    const sink = desk.restart().sink(desk.address);
    expect((await sink.post(finalDraft("One."), "n:0", signal)).id).toBe(id);
    expect((await sink.post(finalDraft("Two."), "n:1", signal)).id).not.toBe(id);
    expect(shown(desk)).toEqual(["One.", "Two."]);
  });

  test("is found when it was posted and the answer was lost", async () => {
    const desk = await startDesk();
    const sink = desk.outbound.sink(desk.address);
    desk.slack.failNext("chat.postMessage", { isDone: true, status: 504 });
    await expect(sink.post(finalDraft("One"), "n", signal)).rejects.toMatchObject({ kind: "unavailable" });
    await sink.post(finalDraft("One"), "n", signal);
    expect(shown(desk)).toEqual(["One"]);
  });

  test("is not posted a second time while Slack does not let it be looked for", async () => {
    const desk = await startDesk();
    const sink = desk.outbound.sink(desk.address);
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
