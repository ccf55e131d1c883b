import { describe, expect, test } from "vitest";
import { createClock } from "../../../../lab/slack-sim/clock.ts";
import { createWebClient, errorOf } from "../../../../lab/slack-sim/web-api.ts";
import type { Json } from "../../../../lab/slack-sim/world.ts";
import { startGeneral, startSlack } from "../../../support/slack.ts";

async function startThread() {
  const { slack, ada, general } = await startGeneral({ clock: createClock({ isFrozen: true }) });
  const question = ada.say(general, "tell me");
  const place = {
    channel: general.id,
    thread_ts: question.ts,
    recipient_team_id: slack.workspace.id,
    recipient_user_id: ada.id,
  };
  const client = createWebClient(slack);
  async function start(args: Json = {}): Promise<{ channel: string; ts: string }> {
    const { ts = "" } = await client.chat.startStream({ ...place, ...args });
    return { channel: general.id, ts };
  }
  const append = (stream: Json, args: Json) => errorOf(slack, "chat.appendStream", { ...stream, ...args });
  const stop = (stream: Json, args: Json = {}) => errorOf(slack, "chat.stopStream", { ...stream, ...args });
  return { slack, ada, general, question, place, client, start, append, stop };
}

describe("the simulated streams", () => {
  test("a stream grows from nothing to the whole text, and the app completes it", async () => {
    const { slack, general, question, start, append, stop } = await startThread();
    const stream = await start();
    expect(await append(stream, { markdown_text: "Hello" })).toBe("ok");
    expect(
      await stop(stream, { markdown_text: " world", metadata: { event_type: "t", event_payload: { id: "1" } } }),
    ).toBe("ok");
    const [answer] = slack.answers(general, question);
    expect(answer?.states.map(({ shown, isStreaming }) => [shown, isStreaming])).toEqual([
      ["", true],
      ["Hello", true],
      ["Hello world", false],
    ]);
    expect(answer?.stream?.state).toBe("completed");
    expect(answer?.content.metadata).toEqual({ event_type: "t", event_payload: { id: "1" } });
  });

  test("a stream accepts the chunks of the official streamer", async () => {
    const { slack, general, question, client, place } = await startThread();
    const streamer = client.chatStream({ ...place, buffer_size: 1 });
    await streamer.append({ markdown_text: "one " });
    const task = { type: "task_update" as const, id: "1", title: "Looking" };
    await streamer.append({ chunks: [{ ...task, status: "in_progress" }] });
    await streamer.stop({ markdown_text: "two", chunks: [{ ...task, status: "complete" }] });
    expect(slack.texts(general, question)).toEqual(["one two"]);
    expect(slack.answers(general, question)[0]?.stream?.tasks.get("1")).toMatchObject({ title: "Looking" });
  });

  test("a stream needs a thread, and in channels both recipients", async () => {
    const { slack, ada, place } = await startThread();
    const { thread_ts: thread, recipient_team_id: team, recipient_user_id: user, channel } = place;
    const start = (args: Json) => errorOf(slack, "chat.startStream", args);
    expect(await start({ channel, recipient_team_id: team, recipient_user_id: user })).toBe("invalid_arguments");
    expect(await start({ channel, thread_ts: thread, recipient_user_id: user })).toBe("missing_recipient_team_id");
    expect(await start({ channel, thread_ts: thread, recipient_team_id: team })).toBe("missing_recipient_user_id");
    expect(await start({ ...place, recipient_user_id: "U404" })).toBe("user_not_found");
    expect(await start({ ...place, recipient_team_id: "T404" })).toBe("team_not_found");
    const direct = ada.dm("hi");
    expect(await start({ channel: direct.channel.id, thread_ts: direct.ts })).toBe("ok");
  });

  test("a stream accepts 12,000 characters per call, and text or chunks but not both", async () => {
    const { start, append } = await startThread();
    const stream = await start();
    expect(await append(stream, { markdown_text: "x".repeat(12_001) })).toBe("msg_too_long");
    const chunks = [{ type: "markdown_text", text: "b" }];
    expect(await append(stream, { markdown_text: "a", chunks })).toBe("invalid_arguments");
    expect(await append(stream, {})).toBe("no_text");
  });

  test("a stream that has reached its byte limit accepts only a stop without text", async () => {
    const { start, append, stop } = await startThread();
    const stream = await start({ markdown_text: "あ".repeat(3_600) });
    expect(await append(stream, { markdown_text: "x".repeat(201) })).toBe("msg_too_long");
    expect(await append(stream, { markdown_text: "x".repeat(200) })).toBe("ok");
    expect(await append(stream, { markdown_text: "x" })).toBe("msg_too_long");
    const task = { type: "task_update", id: "1", title: "x", status: "complete" };
    expect(await append(stream, { chunks: [task] })).toBe("msg_too_long");
    expect(await stop(stream)).toBe("ok");
  });

  test("Slack closes a stream after five minutes for appends and the stop, and an update can repair its message", async () => {
    const { slack, general, question, start, append, stop } = await startThread();
    slack.allow("dead-stream");
    const stream = await start({ markdown_text: "so far" });
    slack.advance(299_999);
    expect(await append(stream, { markdown_text: "," })).toBe("ok");
    slack.advance(1);
    expect(slack.answers(general, question)[0]?.stream).toMatchObject({ state: "errored", endedBy: "expired" });
    expect(await append(stream, { markdown_text: "more" })).toBe("message_not_in_streaming_state");
    expect(slack.violations).toEqual([]);
    expect(await stop(stream)).toBe("message_not_in_streaming_state");
    expect(await errorOf(slack, "chat.update", { ...stream, markdown_text: "so far, and more" })).toBe("ok");
  });

  test("a stream cannot grow in a channel that is archived, or that the app has left", async () => {
    const { slack, general, start, append, stop } = await startThread();
    const stream = await start({ markdown_text: "a" });
    general.isArchived = true;
    expect([await append(stream, { markdown_text: "b" }), await stop(stream)]).toEqual(["is_archived", "is_archived"]);
    expect(await errorOf(slack, "chat.update", { ...stream, text: "b" })).toBe("is_inactive");
    general.isArchived = false;
    general.members.delete(slack.workspace.bot.id);
    expect(await append(stream, { markdown_text: "b" })).toBe("not_in_channel");
  });

  test("an app cannot update a growing stream", async () => {
    const { slack, start, stop } = await startThread();
    const stream = await start({ markdown_text: "a" });
    const update = () => errorOf(slack, "chat.update", { ...stream, text: "a b" });
    expect(await update()).toBe("streaming_state_conflict");
    await stop(stream);
    expect(await update()).toBe("ok");
  });

  test("a person's Stop ends a stream, and the app gets the event", async () => {
    const { slack, ada, general, question, start, append, stop } = await startThread();
    slack.allow("dead-stream");
    const stream = await start({ markdown_text: "a" });
    ada.stop(question);
    const told = slack.deliveries.find(({ name }) => name === "agent_session_stopped")?.payload["event"];
    expect(told).toMatchObject({ channel: general.id, thread_ts: question.ts, streaming_message_ts: [stream.ts] });
    expect(await append(stream, { markdown_text: "b" })).toBe("stopped_by_user");
    expect(await stop(stream)).toBe("message_not_in_streaming_state");
  });

  test("an append to a stream that the app stopped is a violation at once", async () => {
    const { slack, start, append, stop } = await startThread();
    const stream = await start({ markdown_text: "a" });
    await stop(stream);
    expect(await append(stream, { markdown_text: "b" })).toBe("message_not_in_streaming_state");
    expect(slack.violations.map(({ kind }) => kind)).toEqual(["dead-stream"]);
    slack.allow("dead-stream");
  });

  test("an append to a stream that Slack ended is a violation if the app already knew", async () => {
    const { slack, start, append } = await startThread();
    const stream = await start({ markdown_text: "a" });
    slack.advance(300_000);
    await append(stream, { markdown_text: "b" });
    expect(slack.violations).toEqual([]);
    await append(stream, { markdown_text: "b" });
    expect(slack.violations.map(({ kind }) => kind)).toEqual(["dead-stream"]);
    slack.allow("dead-stream");
  });

  test("a stream belongs to the app, and to an existing message", async () => {
    const { question, general, append } = await startThread();
    const text = { markdown_text: "b" };
    expect(await append({ channel: general.id, ts: question.ts }, text)).toBe("message_not_owned_by_app");
    expect(await append({ channel: general.id, ts: "1700000000.000001" }, text)).toBe("message_not_found");
  });

  test.each([
    ["unknown_method", 200],
    ["http404", 404],
  ] as const)("the simulator has no streams in a workspace with %s", async (streaming, status) => {
    const slack = await startSlack({ streaming });
    await expect(createWebClient(slack).chat.startStream({ channel: "C1", thread_ts: "1" })).rejects.toMatchObject(
      status === 404 ? { statusCode: 404 } : { data: { error: "unknown_method" } },
    );
    slack.setStreaming("on");
    expect(await errorOf(slack, "chat.startStream", { channel: "C1", thread_ts: "1" })).toBe("channel_not_found");
  });
});
