import { describe, expect, test } from "vitest";
import { readCommand, toMessageEvent } from "../../../../adapters/local/hear/inbound.ts";

test("a chat at the local page is one conversation, and every message in it addresses the bot", () => {
  const message = { id: 7, chatId: "chat-1", files: [] };
  expect(toMessageEvent({ nonce: "nonce-1", at: 1000, message }, "hello")).toEqual({
    kind: "message",
    key: "local:nonce-1",
    conversationId: "local:chat-1",
    author: { id: "you", name: "you", timeZone: expect.any(String) },
    reply: { platform: "local", channelId: "chat-1", isDirect: true, replyToId: "local:7" },
    at: 1000,
    messageId: "local:7",
    text: "hello",
    attachments: [],
    addressed: "bot",
  });
});

describe("reading a command at the local page", () => {
  const known = [
    { name: "help", description: "" },
    { name: "imagine", description: "" },
  ];

  test.for([
    ["/help", "help", ""],
    ["/HELP", "help", ""],
    ["/imagine a fox\nin snow --ratio 16:9 ", "imagine", "a fox\nin snow --ratio 16:9"],
    ["/imagine\nキツネ", "imagine", "キツネ"],
  ])("readCommand reads %j as a command", ([typed = "", name, text]) => {
    expect(readCommand(typed, known)).toEqual({ kind: "command", name, text });
  });

  test.for(["hello", "", "/", "//", "/usr/bin/node", "/2", " /help", "a /help", "/こんにちは"])(
    "readCommand reads %j as text",
    (typed) => expect(readCommand(typed, known)).toEqual({ kind: "text" }),
  );

  test.for(["/hlep", "/hel", "/helpp", "/hepl", "/halp"])(
    "readCommand suggests for %s the intended command",
    (typed) => {
      expect(readCommand(typed, known)).toEqual({
        kind: "unknown",
        message: expect.stringContaining("Did you mean /help?"),
      });
    },
  );

  test("readCommand says what to do about an unknown command", () => {
    expect(readCommand("/frobnicate it", known)).toEqual({
      kind: "unknown",
      message:
        "I don't know the command /frobnicate. Type / to see all commands. To send it as text, put a space in front.",
    });
  });

  test("readCommand accepts every command if none are known", () => {
    expect(readCommand("/anything goes", [])).toEqual({ kind: "command", name: "anything", text: "goes" });
  });
});
