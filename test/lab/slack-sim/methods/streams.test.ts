import { describe, expect, test } from "vitest";
import { createClock } from "../clock.ts";
import { startSlack } from "../slack.ts";
import { createWebClient, errorOf } from "../web-api.ts";
import type { Json } from "../world.ts";

async function startThread() {
  const slack = await startSlack({ clock: createClock({ isFrozen: true }) });
  const ada = slack.user({ name: "Ada" });
  const general = slack.channel({ name: "general", members: [ada] });
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

describe("streams", () => {
  test("grow from nothing to the whole text and end completed", async () => {
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

  test("take the chunks that the official streamer sends", async () => {
    const { slack, general, question, client, place } = await startThread();
    const streamer = client.chatStream({ ...place, buffer_size: 1 });
    await streamer.append({ markdown_text: "one " });
    const task = { type: "task_update" as const, id: "1", title: "Looking" };
    await streamer.append({ chunks: [{ ...task, status: "in_progress" }] });
    await streamer.stop({ markdown_text: "two", chunks: [{ ...task, status: "complete" }] });
    expect(slack.texts(general, question)).toEqual(["one two"]);
    expect(slack.answers(general, question)[0]?.stream?.tasks.get("1")).toMatchObject({ title: "Looking" });
  });

  test("need a thread, and in channels both recipients", async () => {
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

  test("take 12,000 characters per call, and text or chunks but not both", async () => {
    const { start, append } = await startThread();
    const stream = await start();
    expect(await append(stream, { markdown_text: "x".repeat(12_001) })).toBe("msg_too_long");
    const chunks = [{ type: "markdown_text", text: "b" }];
    expect(await append(stream, { markdown_text: "a", chunks })).toBe("invalid_arguments");
    expect(await append(stream, {})).toBe("no_text");
  });

  test("end at a number of bytes over all calls, after which only a stop without text is taken", async () => {
    const { start, append, stop } = await startThread();
    const stream = await start({ markdown_text: "あ".repeat(3_600) });
    expect(await append(stream, { markdown_text: "x".repeat(201) })).toBe("msg_too_long");
    expect(await append(stream, { markdown_text: "x".repeat(200) })).toBe("ok");
    expect(await append(stream, { markdown_text: "x" })).toBe("msg_too_long");
    const task = { type: "task_update", id: "1", title: "x", status: "complete" };
    expect(await append(stream, { chunks: [task] })).toBe("msg_too_long");
    expect(await stop(stream)).toBe("ok");
  });

  test("are closed by Slack after five minutes, for appends and for the stop, and can be repaired by an update", async () => {
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

  test("stand still in a channel that is archived, or that the app has left", async () => {
    const { slack, general, start, append, stop } = await startThread();
    const stream = await start({ markdown_text: "a" });
    general.isArchived = true;
    expect([await append(stream, { markdown_text: "b" }), await stop(stream)]).toEqual(["is_archived", "is_archived"]);
    expect(await errorOf(slack, "chat.update", { ...stream, text: "b" })).toBe("is_inactive");
    general.isArchived = false;
    general.members.delete(slack.workspace.bot.id);
    expect(await append(stream, { markdown_text: "b" })).toBe("not_in_channel");
  });

  test("cannot be updated while they grow", async () => {
    const { slack, start, stop } = await startThread();
    const stream = await start({ markdown_text: "a" });
    const update = () => errorOf(slack, "chat.update", { ...stream, text: "a b" });
    expect(await update()).toBe("streaming_state_conflict");
    await stop(stream);
    expect(await update()).toBe("ok");
  });

  test("are ended by a person's Stop, and the app is told", async () => {
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

  test("an append to a stream that Slack ended is a violation when the app was told before", async () => {
    const { slack, start, append } = await startThread();
    const stream = await start({ markdown_text: "a" });
    slack.advance(300_000);
    await append(stream, { markdown_text: "b" });
    expect(slack.violations).toEqual([]);
    await append(stream, { markdown_text: "b" });
    expect(slack.violations.map(({ kind }) => kind)).toEqual(["dead-stream"]);
    slack.allow("dead-stream");
  });

  test("belong to the app, and to a message that is there", async () => {
    const { question, general, append } = await startThread();
    const text = { markdown_text: "b" };
    expect(await append({ channel: general.id, ts: question.ts }, text)).toBe("message_not_owned_by_app");
    expect(await append({ channel: general.id, ts: "1700000000.000001" }, text)).toBe("message_not_found");
  });

  test.each([
    ["unknown_method", 200],
    ["http404", 404],
  ] as const)("do not exist in a workspace with %s", async (streaming, status) => {
    const slack = await startSlack({ streaming });
    await expect(createWebClient(slack).chat.startStream({ channel: "C1", thread_ts: "1" })).rejects.toMatchObject(
      status === 404 ? { statusCode: 404 } : { data: { error: "unknown_method" } },
    );
    slack.setStreaming("on");
    expect(await errorOf(slack, "chat.startStream", { channel: "C1", thread_ts: "1" })).toBe("channel_not_found");
  });
});
