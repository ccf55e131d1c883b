import { describe, expect, test } from "vitest";
import {
  readCommand,
  toCommandEvent,
  toDeletedEvent,
  toEditEvent,
  toMessageEvent,
  type UserAction,
} from "../../../../adapters/local/listen/inbound.ts";

describe("actions at the local page as events", () => {
  const names = { botName: "Palaver", people: ["Ada", "Ben", "千恵"] };
  const base = { nonce: "nonce-1", author: { id: "ada", name: "Ada" }, at: 1000 };
  const chat: UserAction = {
    ...base,
    channelKind: "chat",
    message: { id: 7, channelId: "chat-1", threadId: null, files: [] },
  };
  const channel: UserAction = {
    ...base,
    channelKind: "channel",
    message: { id: 7, channelId: "general", threadId: null, files: [] },
  };
  const thread: UserAction = {
    ...base,
    channelKind: "channel",
    message: { id: 9, channelId: "general", threadId: 7, files: [] },
  };

  test("makes one conversation of a direct chat, and addresses the bot with every message", () => {
    expect(toMessageEvent(chat, "hello", names)).toEqual({
      kind: "message",
      key: "local:nonce-1",
      conversationId: "local:chat-1",
      messageId: "local:7",
      author: { id: "ada", name: "Ada" },
      reply: {
        platform: "local",
        channelId: "chat-1",
        isDirect: true,
        replyToId: "local:7",
        extra: { askedBy: "ada" },
      },
      at: 1000,
      text: "hello",
      attachments: [],
      addressed: "bot",
    });
  });

  test("addresses the bot with a message to nobody in a channel with /listen on", () => {
    const listening = { ...names, isListening: true };
    expect(toMessageEvent(channel, "hello", listening)).toMatchObject({
      text: "hello",
      addressed: "bot",
      isListenedTo: true,
    });
    expect(toMessageEvent(channel, "@Palaver hello", listening)).not.toHaveProperty("isListenedTo");
    expect(toMessageEvent(channel, "@Ben hello", listening)).toBeUndefined();
    expect(toMessageEvent(channel, "hello", names)).toBeUndefined();
  });

  test("opens a thread under a message that mentions the bot in a channel", () => {
    expect(toMessageEvent(channel, "@Palaver hello", names)).toMatchObject({
      conversationId: "local:general:7",
      reply: { channelId: "general", threadId: "7" },
      text: "hello",
      addressed: "bot",
    });
  });

  test.for(["hello", "@Ben hello", "mail me at ada@palaver.example", "@Palaverer", "Palaver"])(
    "leaves %j in a channel between people",
    (text) => expect(toMessageEvent(channel, text, names)).toBeUndefined(),
  );

  test.for([
    ["and then?", "open"],
    ["@Ben what do you think?", "other"],
    ["  @千恵さん、どう?", "other"],
    ["I agree with @Ben", "open"],
    ["@Ben ask @Palaver", "bot"],
    ["thanks @palaver", "bot"],
  ])("takes %j in a thread as addressed to %s", ([text = "", addressed]) => {
    expect(toMessageEvent(thread, text, names)).toMatchObject({ addressed, conversationId: "local:general:7" });
  });

  test.for([
    ["@Palaver hello", "hello"],
    ["@palaver, hello", "hello"],
    ["@Palaver: hello", "hello"],
    ["@Palaver、こんにちは", "こんにちは"],
    ["hello @Palaver", "hello"],
    ["@Palaver", ""],
    ["can @Palaver and @Ben help?", "can Palaver and @Ben help?"],
    ["@Palaver say @Palaver twice", "say Palaver twice"],
  ])("takes the mention out of %j", ([text = "", expected]) => {
    expect(toMessageEvent(chat, text, names)?.text).toBe(expected);
  });

  test("makes an event of an edit where the message was one", () => {
    expect(toEditEvent(chat, "a", "b", names)).toMatchObject({ kind: "edited", messageId: "local:7", text: "b" });
    expect(toEditEvent(channel, "@Palaver a", "b", names)).toMatchObject({ kind: "edited", text: "b" });
    expect(toEditEvent(channel, "a", "b", names)).toBeUndefined();
  });

  test("takes an edit that adds the mention for the first message of a thread", () => {
    expect(toEditEvent(channel, "a", "@Palaver a", names)).toMatchObject({
      kind: "message",
      text: "a",
      addressed: "bot",
    });
  });

  test("names the deleted message and its conversation", () => {
    expect(toDeletedEvent(thread)).toMatchObject({
      kind: "deleted",
      messageId: "local:9",
      conversationId: "local:general:7",
    });
  });

  test("answers a command in a channel in the channel, and one in a thread in the thread", () => {
    const inChannel = toCommandEvent(channel, "help", "");
    expect(inChannel).toMatchObject({ kind: "command", conversationId: "local:general", name: "help", text: "" });
    expect(inChannel.reply).not.toHaveProperty("threadId");
    expect(toCommandEvent(thread, "help", "")).toMatchObject({
      conversationId: "local:general:7",
      reply: { threadId: "7" },
    });
  });

  test("hands over attachments as references", () => {
    const kind = { contentType: "image/png", isImage: true, width: 1, height: 1, altText: null, isSpoiler: false };
    const file = { id: "f", name: "a.png", sizeBytes: 3, ...kind };
    const withFile = { ...chat, message: { ...chat.message, files: [file] } };
    expect(toMessageEvent(withFile, "", names)?.attachments).toEqual([
      { platform: "local", id: "f", name: "a.png", sizeBytes: 3 },
    ]);
  });
});

describe("readCommand", () => {
  const known = [
    { name: "help", description: "" },
    { name: "imagine", description: "" },
  ];

  test.for([
    ["/help", "help", ""],
    ["/HELP", "help", ""],
    ["/imagine a fox\nin snow --ratio 16:9 ", "imagine", "a fox\nin snow --ratio 16:9"],
    ["/imagine\nキツネ", "imagine", "キツネ"],
  ])("takes %j for a command", ([typed = "", name, text]) => {
    expect(readCommand(typed, known)).toEqual({ kind: "command", name, text });
  });

  test.for(["hello", "", "/", "//", "/usr/bin/node", "/2", " /help", "a /help", "/こんにちは"])(
    "takes %j for text",
    (typed) => expect(readCommand(typed, known)).toEqual({ kind: "text" }),
  );

  test.for(["/hlep", "/hel", "/helpp", "/hepl", "/halp"])("points from %s to the command that was meant", (typed) => {
    expect(readCommand(typed, known)).toEqual({
      kind: "unknown",
      message: expect.stringContaining("Did you mean /help?"),
    });
  });

  test("says what to do about a command nobody knows", () => {
    expect(readCommand("/frobnicate it", known)).toEqual({
      kind: "unknown",
      message:
        "There is no command /frobnicate. Type / to see the commands there are. With a space in front it is sent as text.",
    });
  });

  test("lets every command through where none are known", () => {
    expect(readCommand("/anything goes", [])).toEqual({ kind: "command", name: "anything", text: "goes" });
  });
});
