import { describe, expect, test } from "vitest";
import { callApi, createWebClient, errorOf } from "../../../../lab/slack-sim/web-api.ts";
import { startGeneral } from "../../../support/slack.ts";

async function startThread() {
  const { slack, ada, general } = await startGeneral();
  const root = ada.say(general, "root");
  const replies = ["one", "two", "three"].map((text) => ada.say(general, text, { thread: root }));
  ada.say(general, "another root");
  return { slack, ada, general, root, replies, client: createWebClient(slack) };
}

describe("the simulated methods of conversations", () => {
  test("an app reads a thread from its root, page by page", async () => {
    const { general, root, client } = await startThread();
    const place = { channel: general.id, ts: root.ts, limit: 3 };
    const first = await client.conversations.replies(place);
    expect(first.messages?.map(({ text }) => text)).toEqual(["root", "one", "two"]);
    expect(first.has_more).toBe(true);
    const cursor = first.response_metadata?.next_cursor ?? "";
    const second = await client.conversations.replies({ ...place, cursor });
    expect(second.messages?.map(({ text }) => text)).toEqual(["three"]);
    expect(second.has_more).toBe(false);
  });

  test("an app reads a channel newest first, without replies, within limits", async () => {
    const { general, root, client } = await startThread();
    const read = async (bounds: { oldest?: string; latest?: string; inclusive?: boolean }) =>
      (await client.conversations.history({ channel: general.id, ...bounds })).messages?.map(({ text }) => text);
    expect(await read({})).toEqual(["another root", "root"]);
    expect(await read({ oldest: root.ts })).toEqual(["another root"]);
    expect(await read({ latest: root.ts, inclusive: true })).toEqual(["root"]);
  });

  test("a commercial app gets at most 15 messages", async () => {
    const { slack, ada, general } = await startGeneral({ limits: { history: "commercial" } });
    for (let count = 0; count < 20; count++) ada.say(general, `${count}`);
    const { messages } = await createWebClient(slack).conversations.history({ channel: general.id, limit: 100 });
    expect(messages?.length).toBe(15);
  });

  test("reading a channel needs the scope for its kind, and membership", async () => {
    const { slack, ada, general, root } = await startThread();
    const outside = slack.channel({ name: "outside", members: [ada], hasApp: false });
    expect(await errorOf(slack, "conversations.history", { channel: outside.id })).toBe("not_in_channel");
    slack.workspace.scopes.delete("channels:history");
    const { body } = await callApi(slack, "conversations.replies", { channel: general.id, ts: root.ts });
    expect(body).toMatchObject({ ok: false, error: "missing_scope", needed: "channels:history" });
    expect(body["provided"]).toContain("chat:write");
    const direct = ada.dm("hi");
    expect(await errorOf(slack, "conversations.history", { channel: direct.channel.id })).toBe("ok");
  });

  test("the simulator does not find a thread that does not exist", async () => {
    const { slack, general } = await startThread();
    const place = { channel: general.id, ts: "1700000000.000001" };
    expect(await errorOf(slack, "conversations.replies", place)).toBe("thread_not_found");
  });

  test("the simulator describes a channel, and an app can join a public one", async () => {
    const { slack, ada, client } = await startThread();
    const outside = slack.channel({ name: "outside", members: [ada], hasApp: false });
    const info = async () => (await client.conversations.info({ channel: outside.id })).channel;
    expect(await info()).toMatchObject({ name: "outside", is_channel: true, is_member: false });
    await client.conversations.join({ channel: outside.id });
    expect(await info()).toMatchObject({ is_member: true });
    expect((await client.conversations.members({ channel: outside.id })).members).toContain(slack.workspace.bot.id);
    const secret = slack.channel({ name: "secret", kind: "private" });
    expect(await errorOf(slack, "conversations.join", { channel: secret.id })).toBe(
      "method_not_supported_for_channel_type",
    );
  });

  test("opening a direct conversation twice returns the same one", async () => {
    const { ada, client } = await startThread();
    const { channel } = await client.conversations.open({ users: ada.id });
    expect(channel?.id).toBe(ada.direct().id);
    expect((await client.conversations.open({ users: ada.id })).channel?.id).toBe(channel?.id);
  });
});
