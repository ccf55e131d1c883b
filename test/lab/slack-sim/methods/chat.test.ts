import { describe, expect, test } from "vitest";
import { callApi, createWebClient, errorOf, postMessage } from "../../../../lab/slack-sim/web-api.ts";
import type { Json } from "../../../../lab/slack-sim/world.ts";
import { startGeneral } from "../../../support/slack.ts";

async function openGeneral() {
  const { slack, ada, general } = await startGeneral({ limits: { postBurst: 100 } });
  const client = createWebClient(slack);
  const post = (args: Json) => errorOf(slack, "chat.postMessage", { channel: general.id, ...args });
  return { slack, ada, general, client, post };
}

const section = (text: string) => ({ type: "section", text: { type: "mrkdwn", text } });

describe("the simulated methods of chat", () => {
  test("a message keeps all its states", async () => {
    const { slack, ada, general, client } = await openGeneral();
    const question = ada.say(general, "hello");
    const ts = await postMessage(client, { channel: general.id, thread_ts: question.ts, text: "He" });
    await client.chat.update({ channel: general.id, ts, text: "Hello" });
    const [answer] = slack.answers(general, question);
    expect(answer?.states.map(({ shown }) => shown)).toEqual(["He", "Hello"]);
    expect(slack.texts(general)).toEqual(["Hello"]);
    await client.chat.delete({ channel: general.id, ts });
    expect(slack.answers(general)).toEqual([]);
    expect(answer?.isDeleted).toBe(true);
  });

  test("timestamps of a channel rise strictly, in seconds with six decimals", async () => {
    const { slack, ada, general } = await openGeneral();
    const all = Array.from({ length: 50 }, () => ada.say(general, "x").ts);
    expect(all.every((ts) => /^\d{10}\.\d{6}$/.test(ts))).toBe(true);
    expect(new Set(all).size).toBe(50);
    expect(all.toSorted()).toEqual(all);
    expect(slack.messages(general).map(({ ts }) => ts)).toEqual(all);
  });

  test("a message needs a text, and markdown_text excludes the other fields", async () => {
    const { post } = await openGeneral();
    expect(await post({})).toBe("no_text");
    expect(await post({ markdown_text: "a", text: "b" })).toBe("markdown_text_conflict");
    expect(await post({ markdown_text: "a", blocks: [section("b")] })).toBe("markdown_text_conflict");
  });

  test("the field markdown_text is limited to 12,000 characters", async () => {
    const { post } = await openGeneral();
    expect(await post({ markdown_text: "x".repeat(12_001) })).toBe("msg_too_long");
    expect(await post({ markdown_text: "x".repeat(12_000) })).toBe("ok");
  });

  test("a text is truncated at 40,000 characters in a post, and refused above 4,000 in an update", async () => {
    const { slack, general, client } = await openGeneral();
    const ts = await postMessage(client, { channel: general.id, text: "y".repeat(50_000) });
    expect(slack.texts(general)[0]?.length).toBe(40_000);
    const update = (chars: number) =>
      errorOf(slack, "chat.update", { channel: general.id, ts, text: "x".repeat(chars) });
    expect(await update(4_001)).toBe("msg_too_long");
    expect(await update(4_000)).toBe("ok");
  });

  test("blocks have their limits", async () => {
    const { slack, general } = await openGeneral();
    const { ts } = slack.user({ name: "Bob" }).say(general, "root");
    // An update that is refused because of its blocks does not count against the limit for posts.
    const blocks = async (...blocks: Json[]) =>
      errorOf(slack, "chat.postEphemeral", {
        channel: general.id,
        user: slack.workspace.bot.id,
        text: "f",
        blocks,
        thread_ts: ts,
      });
    expect(await blocks(...Array.from({ length: 51 }, () => section("x")))).toBe("invalid_blocks");
    expect(await blocks(section("x".repeat(3_001)))).toBe("invalid_blocks");
    expect(await blocks(section("x".repeat(3_000)))).toBe("ok");
    expect(await blocks({ type: "header", text: { type: "plain_text", text: "x".repeat(151) } })).toBe(
      "invalid_blocks",
    );
    const markdown = (chars: number) => ({ type: "markdown", text: "x".repeat(chars) });
    expect(await blocks(markdown(6_000), markdown(6_001))).toBe("msg_blocks_too_long");
    expect(await blocks(markdown(11_000), section("x".repeat(2_500)))).toBe("msg_blocks_too_long");
    expect(await blocks({ type: "markdown" })).toBe("invalid_blocks");
    const button = { type: "button", action_id: "stop", text: { type: "plain_text", text: "Stop" } };
    expect(await blocks({ type: "actions", elements: [button, button] })).toBe("invalid_blocks");
  });

  test("feedback buttons come in pairs, with texts and values, in a separate block", async () => {
    const { slack, general } = await openGeneral();
    const judged = (text: unknown, value: unknown) => ({ text: { type: "plain_text", text }, value });
    const [good, bad] = [judged("Good", "good:1"), judged("Bad", "bad:1")];
    const feedback = { type: "feedback_buttons", action_id: "f", positive_button: good, negative_button: bad };
    const send = (elements: Json[], type = "context_actions") =>
      errorOf(slack, "chat.postEphemeral", {
        channel: general.id,
        user: slack.workspace.bot.id,
        text: "f",
        blocks: [{ type, elements }],
      });
    expect(await send([feedback])).toBe("ok");
    expect(await send([feedback], "actions")).toBe("invalid_blocks");
    const wrong: Json[][] = [
      [],
      Array.from({ length: 6 }, (_, index) => ({ ...feedback, action_id: `f${index}` })),
      [{ type: "button", action_id: "f", ...good }],
      [{ ...feedback, negative_button: undefined }],
      [{ ...feedback, positive_button: { ...good, text: "Good" } }],
      [{ ...feedback, positive_button: { ...good, text: { type: "mrkdwn", text: "Good" } } }],
      [{ ...feedback, positive_button: { ...good, accessibility_label: "x".repeat(76) } }],
      ...[judged("", "v"), judged("x".repeat(76), "v"), judged("Bad", ""), judged("Bad", "x".repeat(2_001))].map(
        (negative_button) => [{ ...feedback, negative_button }],
      ),
    ];
    for (const elements of wrong) expect([elements, await send(elements)]).toEqual([elements, "invalid_blocks"]);
    slack.setUnknown("feedback_buttons");
    expect(await send([feedback])).toBe("invalid_blocks");
  });

  test("a reply needs an existing thread, whose root is not a reply", async () => {
    const { ada, general, post } = await openGeneral();
    const root = ada.say(general, "root");
    const reply = ada.say(general, "reply", { thread: root });
    expect(await post({ text: "a", thread_ts: "1700000000.000001" })).toBe("thread_not_found");
    expect(await post({ text: "a", thread_ts: "soon" })).toBe("invalid_thread_ts");
    expect(await post({ text: "a", thread_ts: reply.ts })).toBe("cannot_reply_to_message");
    expect(await post({ text: "a", thread_ts: root.ts })).toBe("ok");
  });

  test("the app writes only in its channels, and changes only its own messages", async () => {
    const { slack, ada, general } = await openGeneral();
    const write = (channel: string) => errorOf(slack, "chat.postMessage", { channel, text: "a" });
    const outside = slack.channel({ name: "outside", members: [ada], hasApp: false });
    expect(await write(outside.id)).toBe("not_in_channel");
    expect(await write(slack.channel({ name: "secret", kind: "private", hasApp: false }).id)).toBe("channel_not_found");
    expect(await write(slack.channel({ name: "old", isArchived: true }).id)).toBe("is_archived");
    expect(await write("C404")).toBe("channel_not_found");
    slack.workspace.scopes.add("chat:write.public");
    expect(await write(outside.id)).toBe("ok");
    const { ts } = ada.say(general, "mine");
    expect(await errorOf(slack, "chat.update", { channel: general.id, ts, text: "b" })).toBe("cant_update_message");
    expect(await errorOf(slack, "chat.delete", { channel: general.id, ts })).toBe("cant_delete_message");
    expect(await errorOf(slack, "chat.update", { channel: general.id, ts: "1700000000.000001", text: "b" })).toBe(
      "message_not_found",
    );
  });

  test("an app can post to a person's id, which leads to their direct conversation", async () => {
    const { slack, ada, client } = await openGeneral();
    await postMessage(client, { channel: ada.id, text: "psst" });
    expect(slack.texts(ada.direct())).toEqual(["psst"]);
  });

  test("only one member sees an ephemeral message, which is not in the history", async () => {
    const { slack, ada, general, client } = await openGeneral();
    await client.chat.postEphemeral({ channel: general.id, user: ada.id, text: "only you" });
    expect(slack.ephemerals(general, ada.id).map(({ shown }) => shown)).toEqual(["only you"]);
    expect(slack.messages(general)).toEqual([]);
    const stranger = slack.user({ name: "Eve" });
    const args = { channel: general.id, user: stranger.id, text: "x" };
    expect(await errorOf(slack, "chat.postEphemeral", args)).toBe("user_not_in_channel");
  });

  test("the simulator validates metadata, keeps it in an update without any, and returns it only on request", async () => {
    const { slack, general, client, post } = await openGeneral();
    expect(await post({ text: "a", metadata: { event_type: "turn" } })).toBe("invalid_metadata_format");
    const metadata = { event_type: "turn", event_payload: { id: "t1" } };
    const ts = await postMessage(client, { channel: general.id, text: "a", metadata });
    await client.chat.update({ channel: general.id, ts, text: "a b" });
    const replies = (include: boolean) =>
      client.conversations.replies({ channel: general.id, ts, include_all_metadata: include });
    expect((await replies(true)).messages?.[0]?.metadata).toEqual(metadata);
    expect((await replies(false)).messages?.[0]?.metadata).toBeUndefined();
    expect(slack.violations).toEqual([]);
  });

  test("a permalink leads to a message", async () => {
    const { slack, ada, general } = await openGeneral();
    const { ts } = ada.say(general, "here");
    const { body } = await callApi(slack, "chat.getPermalink", { channel: general.id, message_ts: ts });
    expect(body["permalink"]).toMatch(new RegExp(`/archives/${general.id}/p\\d{16}$`));
  });
});
