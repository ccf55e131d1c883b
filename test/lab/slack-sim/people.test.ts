import { describe, expect, test } from "vitest";
import { createClock } from "../../../lab/slack-sim/clock.ts";
import { createWebClient, postMessage } from "../../../lab/slack-sim/web-api.ts";
import type { Json } from "../../../lab/slack-sim/world.ts";
import { startGeneral } from "../../support/slack.ts";

async function openGeneral(events?: string[]) {
  const clock = createClock({ isFrozen: true });
  const { slack, ada, general } = await startGeneral(events === undefined ? { clock } : { clock, events });
  const told = () => slack.deliveries.map(({ name, payload }) => [name, payload["event"] as Json] as const);
  const names = () => told().map(([name]) => name);
  const last = () => told().at(-1)?.[1] ?? {};
  return { slack, ada, general, told, names, last, bot: slack.workspace.bot };
}

describe("people in the Slack simulator", () => {
  test("a mention causes two events, a message and a mention, with different event ids", async () => {
    const { slack, ada, general, told, bot } = await openGeneral();
    const { ts } = ada.mention(general, "hello");
    const common = { channel: general.id, ts, user: ada.id, text: `<@${bot.id}> hello` };
    expect(told()).toMatchObject([
      ["message", { ...common, channel_type: "channel" }],
      ["app_mention", common],
    ]);
    const ids = slack.deliveries.map(({ payload }) => payload["event_id"]);
    expect(new Set(ids).size).toBe(2);
    const [message, mention] = told().map(([, event]) => event["client_msg_id"]);
    expect(mention).toBe(message);
  });

  test("a direct message causes only a message event, even if it contains a mention", async () => {
    const { ada, told, bot } = await openGeneral();
    ada.dm(`<@${bot.id}> hello`);
    expect(told()).toMatchObject([["message", { channel_type: "im" }]]);
  });

  test("a reply names its thread, and the root of a thread does not", async () => {
    const { ada, general, last } = await openGeneral();
    const root = ada.say(general, "root");
    expect(last()).not.toHaveProperty("thread_ts");
    ada.say(general, "reply", { thread: ada.say(general, "first", { thread: root }) });
    expect(last()).toMatchObject({ thread_ts: root.ts, parent_user_id: ada.id });
  });

  test("a message with files causes no mention event", async () => {
    const { ada, general, told, bot } = await openGeneral();
    ada.upload(general, [{ name: "cat.png", bytes: Buffer.from("x") }], `<@${bot.id}> what is this?`);
    const file = { name: "cat.png", mimetype: "image/png", size: 1 };
    expect(told()).toMatchObject([["message/file_share", { files: [file] }]]);
    expect(told()[0]?.[1]).not.toHaveProperty("client_msg_id");
  });

  test("files for a form are in no channel, and the app can read them", async () => {
    const { slack, ada, general } = await openGeneral();
    const [file] = ada.attach([{ name: "cat.png", bytes: Buffer.from("x") }]);
    expect(file).toMatchObject({ name: "cat.png", mimetype: "image/png", user: ada.id, shares: {} });
    const headers = { authorization: `Bearer ${slack.botToken}` };
    expect(await (await fetch(String(file?.["url_private"]), { headers })).text()).toBe("x");
    expect(slack.messages(general)).toEqual([]);
  });

  test("in a channel shared with other organisations a mention causes only a message event", async () => {
    const { slack, ada, names } = await openGeneral();
    ada.mention(slack.channel({ name: "partners", members: [ada], isShared: true }), "hello");
    expect(names()).toEqual(["message"]);
  });

  test("an edit causes a change event, and another event for a mention in it", async () => {
    const { ada, general, told } = await openGeneral();
    const message = ada.mention(general, "hello");
    ada.edit(message, `${message.content.text} again`);
    const [change, mention] = told().slice(2);
    expect(change).toMatchObject([
      "message/message_changed",
      { hidden: true, message: { ts: message.ts, edited: { user: ada.id } }, previous_message: { ts: message.ts } },
    ]);
    expect(change?.[1]["ts"]).not.toBe(message.ts);
    expect(mention).toMatchObject(["app_mention", { ts: message.ts, edited: { user: ada.id } }]);
  });

  test("a link preview causes a change event without an edit", async () => {
    const { ada, general, last } = await openGeneral();
    ada.unfurl(ada.say(general, "see https://example.org"));
    expect(last()).toMatchObject({ subtype: "message_changed" });
    expect(last()["message"]).not.toHaveProperty("edited");
  });

  test("a deletion event contains the deleted message; the root of a thread becomes a tombstone", async () => {
    const { slack, ada, general, last } = await openGeneral();
    const root = ada.say(general, "root");
    const reply = ada.say(general, "reply", { thread: root });
    ada.delete(root);
    expect(last()).toMatchObject({
      subtype: "message_changed",
      message: { subtype: "tombstone", ts: root.ts },
      previous_message: { text: "root" },
    });
    const client = createWebClient(slack);
    const read = () => client.conversations.replies({ channel: general.id, ts: root.ts });
    expect((await read()).messages).toMatchObject([{ subtype: "tombstone", ts: root.ts }, { text: "reply" }]);
    ada.delete(reply);
    expect(last()).toMatchObject({
      subtype: "message_deleted",
      deleted_ts: reply.ts,
      previous_message: { text: "reply" },
    });
    await expect(read()).rejects.toThrow("thread_not_found");
  });

  test("the app gets events for its own posts, edits and deletions", async () => {
    const { slack, general, told, bot } = await openGeneral();
    const client = createWebClient(slack);
    const ts = await postMessage(client, { channel: general.id, text: "hi" });
    await client.chat.update({ channel: general.id, ts, text: "hi there" });
    await client.chat.delete({ channel: general.id, ts });
    expect(told()).toMatchObject([
      ["message", { user: bot.id, bot_id: bot.botId, ts }],
      ["message/message_changed", { message: { bot_id: bot.botId } }],
      ["message/message_deleted", { deleted_ts: ts }],
    ]);
    expect(told()[1]?.[1]).not.toHaveProperty("user");
  });

  test("a message of another bot names that bot", async () => {
    const { slack, general, last } = await openGeneral();
    const other = slack.user({ name: "Other", isBot: true });
    other.mention(general, "beep");
    expect(last()).toMatchObject({ type: "app_mention", bot_id: other.user.botId });
  });

  test("people join, open the home tab or the messages tab, and react", async () => {
    const { slack, ada, general, told } = await openGeneral();
    const bob = slack.user({ name: "Bob" });
    bob.join(general);
    ada.openHome();
    ada.openHome("messages");
    ada.react(ada.say(general, "x"), "eyes");
    expect(told()).toMatchObject([
      ["message/channel_join", { user: bob.id }],
      ["app_home_opened", { user: ada.id, tab: "home" }],
      ["app_home_opened", { user: ada.id, tab: "messages", channel: ada.direct().id }],
      ["message", {}],
    ]);
    expect(general.members.has(bob.id)).toBe(true);
  });

  test("the app gets only the events that it subscribed to, in its channels", async () => {
    const { slack, ada, general, names } = await openGeneral(["app_mention"]);
    ada.mention(general, "hello");
    ada.mention(slack.channel({ name: "outside", members: [ada], hasApp: false }), "hello");
    ada.dm("hello");
    expect(names()).toEqual(["app_mention"]);
  });

  test("each kind of channel has its own event", async () => {
    const { slack, ada, last } = await openGeneral();
    for (const [kind, type] of [
      ["private", "group"],
      ["mpim", "mpim"],
    ] as const) {
      ada.say(slack.channel({ name: kind, kind, members: [ada] }), "x");
      expect(last()).toMatchObject({ channel_type: type });
    }
  });

  test("workspaces in the simulator share nothing", async () => {
    const { slack, general } = await openGeneral();
    const other = slack.addWorkspace("Other");
    const eve = slack.user({ name: "Eve", workspace: other });
    eve.mention(slack.channel({ name: "theirs", members: [eve], workspace: other }), "hello");
    expect(slack.deliveries.map(({ payload }) => payload["team_id"])).toEqual([other.id, other.id]);
    const client = createWebClient(slack, other.botToken);
    await expect(postMessage(client, { channel: general.id, text: "x" })).rejects.toThrow(/channel_not_found/);
    await expect(client.users.info({ user: slack.workspace.bot.id })).rejects.toThrow(/user_not_found/);
  });
});
