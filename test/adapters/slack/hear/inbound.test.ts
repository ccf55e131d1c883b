import { describe, expect, test } from "vitest";
import { toAttachments } from "../../../../adapters/slack/api/files.ts";
import type { Body } from "../../../../adapters/slack/api/wire.ts";
import {
  readLookedAt,
  readSlackMessage,
  toAddressed,
  toBodyKey,
  toMessageEvent,
} from "../../../../adapters/slack/hear/inbound.ts";
import { ACME, fakeNames } from "../workspace.ts";

const deps = { people: fakeNames({ U1: "Ada", UBOT: "Palaver" }), toAttachments };

const CHANNEL = { channelId: "C1", channelType: "channel" };
const DIRECT = { channelId: "D1", channelType: "im" };
const MESSAGE = { type: "message", user: "U1", text: "hello", ts: "100.000200" };

function read(fields: Body, place: Parameters<typeof readSlackMessage>[1] = CHANNEL) {
  return readSlackMessage({ ...MESSAGE, ...fields }, place, ACME);
}

function addressed(fields: Body, place?: Parameters<typeof readSlackMessage>[1]) {
  const said = read(fields, place);
  return said && toAddressed(said);
}

describe("reading a person's message", () => {
  test.each([
    ["a plain message", {}],
    ["a message with files", { subtype: "file_share", files: [{ id: "F1" }] }],
    ["a reply that the channel sees too", { subtype: "thread_broadcast", thread_ts: "90.0" }],
    ["a /me message", { subtype: "me_message" }],
  ])("the adapter reads %s as a message", (_, fields) => {
    expect(read(fields)).toMatchObject({ userId: "U1", isBot: false });
  });

  test.each([
    ["a notice that a person joined", { subtype: "channel_join" }],
    ["a notice about a topic", { subtype: "channel_topic" }],
    ["the start of a conversation with an agent", { subtype: "assistant_app_thread" }],
    ["a message by Slackbot", { user: "USLACKBOT" }],
    ["the bot's own message", { user: "UBOT" }],
    ["the bot's own message under another name", { user: undefined, bot_id: "B1", subtype: "bot_message" }],
    ["a message without an author", { user: undefined }],
    ["a message without a ts", { ts: undefined }],
    ["an unreadable message", { ts: 5, text: {}, user: [] }],
  ])("the adapter does not read %s as a message", (_, fields) => {
    expect(read(fields)).toBeUndefined();
  });

  test("the adapter marks a message by another bot", () => {
    expect(read({ bot_id: "B9", bot_profile: { name: "Alarm" } })).toMatchObject({ isBot: true, userName: "Alarm" });
    const nameless = { user: undefined, bot_id: "B9", subtype: "bot_message", username: "alarm" };
    expect(read(nameless)).toMatchObject({ userId: "B9", isBot: true, userName: "alarm" });
  });
});

describe("the addressee of a message", () => {
  test.each([
    ["a mention in a channel addresses the bot", { text: "hey <@UBOT>" }, CHANNEL, "bot"],
    ["a message in a channel addresses no one", {}, CHANNEL, undefined],
    ["a mention in code addresses no one", { text: "write `<@UBOT> help`" }, CHANNEL, undefined],
    ["a direct message addresses the bot", {}, DIRECT, "bot"],
    [
      "a direct message without a channel type addresses the bot",
      {},
      { channelId: "D1", channelType: undefined },
      "bot",
    ],
    ["a message in a thread is open to the bot", { thread_ts: "90.0" }, CHANNEL, "open"],
    [
      "a mention of another person in a thread addresses that person",
      { thread_ts: "90.0", text: "<@U2> you?" },
      CHANNEL,
      "other",
    ],
    [
      "a mention of the bot and of another person addresses the bot",
      { thread_ts: "90.0", text: "<@U2> ask <@UBOT>" },
      CHANNEL,
      "bot",
    ],
    ["a message in a group addresses no one", {}, { channelId: "G1", channelType: "mpim" }, undefined],
    ["a mention by another bot addresses the bot", { bot_id: "B9", text: "<@UBOT> hi" }, CHANNEL, "bot"],
    ["a direct message by another bot addresses no one", { bot_id: "B9" }, DIRECT, undefined],
    ["a message by another bot in a thread addresses no one", { bot_id: "B9", thread_ts: "90.0" }, CHANNEL, undefined],
    ["the root of a thread addresses no one", { thread_ts: "100.000200" }, CHANNEL, undefined],
  ])("%s", (_, fields, place, whom) => {
    expect(addressed(fields, place)).toBe(whom);
  });
});

describe("a message event", () => {
  test("a message event names the person, their workspace and the time of writing", async () => {
    const said = read({ thread_ts: "90.0", user_team: "T9", text: "<@UBOT> hello" });
    expect(said && (await toMessageEvent(said, "bot", deps))).toEqual({
      kind: "message",
      key: "slack:T1:C1:100.000200",
      messageId: "slack:T1:C1:100.000200",
      conversationId: "slack:T1:C1:90.0",
      author: { id: "U1", name: "Ada" },
      text: "hello",
      attachments: [],
      addressed: "bot",
      at: 100_000,
      reply: {
        platform: "slack",
        channelId: "C1",
        workspaceId: "T1",
        threadId: "90.0",
        replyToId: "slack:T1:C1:100.000200",
        extra: { team: "T1", user: "U1", recipientTeam: "T9", activeThread: "90.0" },
      },
    });
  });

  test("a message event contains forwarded messages below the words, and an empty message produces no event", async () => {
    const attachments = [{ is_share: true, text: "news" }];
    const said = read({ text: "look", attachments });
    expect(said && (await toMessageEvent(said, "bot", deps))?.text).toBe("look\n\nForwarded:\n> news");
    const empty = read({ text: "" });
    expect(empty && (await toMessageEvent(empty, "bot", deps))).toBeUndefined();
  });

  test("the body key depends only on words and files, however Slack shows them", () => {
    const keyOf = (fields: Body) => {
      const said = read(fields);
      return said && toBodyKey(said);
    };
    const files = [{ id: "F1", name: "cat.png" }];
    expect(keyOf({ files, attachments: [{ title: "preview" }] })).toBe(keyOf({ files: [{ id: "F1" }] }));
    expect(keyOf({ files })).not.toBe(keyOf({}));
    expect(keyOf({ text: "a" })).not.toBe(keyOf({ text: "b" }));
  });
});

const channel = { type: "slack#/types/channel_id", value: "C1", team_id: "T1" };

test("the channel that a person looks at is the first channel in Slack's context", () => {
  const canvas = { type: "slack#/types/canvas_id", value: "F1" };
  const message = { type: "slack#/types/message_context", value: { channel_id: "C2", message_ts: "1.2" } };
  expect(readLookedAt({ entities: [canvas, message, channel] })).toBe("C2");
  expect(readLookedAt({ channel_id: "C3", team_id: "T1", enterprise_id: null })).toBe("C3");
  for (const nothing of [undefined, null, {}, { entities: [canvas] }, { entities: [{}] }, "C1"]) {
    expect(readLookedAt(nothing)).toBeUndefined();
  }
});
