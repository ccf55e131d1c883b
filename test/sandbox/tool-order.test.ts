import { describe, expect, test } from "vitest";
import { readChatRequest } from "../../src/sandbox/chat-request.ts";

const user = { role: "user", content: "hi" };
const calls = (...ids: string[]) => ({
  role: "assistant",
  tool_calls: ids.map((id) => ({ id, type: "function", function: { name: "look", arguments: "{}" } })),
});
const result = (id: string) => ({ role: "tool", content: "seen", tool_call_id: id });
const read = (...messages: unknown[]) => readChatRequest({ model: "m", messages });

describe("the order of calls and results in a conversation with tools", () => {
  test("a client can answer calls in any order, and reuse ids in a later round", () => {
    read(user, calls("a", "b"), result("b"), result("a"), user, calls("a"), result("a"));
  });

  test.each<[string, unknown[], string]>([
    ["a tool message without a call", [user, result("a")], "messages[1].tool_call_id"],
    ["a tool message for another call", [user, calls("a"), result("b")], "messages[2].tool_call_id"],
    ["a call answered twice", [user, calls("a"), result("a"), result("a")], "messages[3].tool_call_id"],
    ["a call answered after somebody spoke", [user, calls("a"), user, result("a")], "messages[2]"],
    ["one of two calls answered", [user, calls("a", "b"), result("a"), user], "messages[3]"],
    ["a call left open at the end", [user, calls("a")], "messages"],
    ["one id for two calls", [user, calls("a", "a")], "messages[1].tool_calls"],
    ["an assistant message with neither content nor calls", [user, { role: "assistant" }], "messages[1].content"],
  ])("the sandbox refuses a conversation: %s", (_name, messages, param) => {
    expect(() => read(...messages)).toThrow(expect.objectContaining({ status: 400, param }));
  });
});
