import { describe, expect, test } from "vitest";
import { applyDelta, type ChatCompletionChunk, settleCalls } from "../../src/gateway/chunks.ts";
import { createSafeText } from "../../src/gateway/safe-text.ts";
import { createStreamDecoder } from "../../src/gateway/stream-decoder.ts";

const LIMITS = { maxEventBytes: 10_000, maxAnswerChars: 10_000, maxBodyBytes: 10_000 };
const usage = { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 };
const whole = {
  id: "c1",
  object: "chat.completion",
  created: 1,
  model: "m",
  choices: [{ index: 0, message: { role: "assistant", content: "hi" }, finish_reason: "length" }],
  usage,
};

function decode(document: unknown) {
  const chunks: ChatCompletionChunk[] = [];
  const decoder = createStreamDecoder(LIMITS, createSafeText([]), (chunk) => chunks.push(chunk));
  decoder.feed(typeof document === "string" ? document : JSON.stringify(document));
  decoder.end();
  const failure = decoder.failure();
  if (failure !== undefined) throw failure;
  const deltas = chunks.flatMap(({ choices }) => choices.map(({ delta }) => delta));
  const message = settleCalls(deltas.reduce(applyDelta, { role: "assistant", content: "" }));
  return { message, tally: decoder.tally };
}

const messageOf = (message: unknown) => decode({ choices: [{ message }] }).message;

describe("a JSON document instead of a stream", () => {
  test("a JSON document is read as a complete answer with its finish reason and usage", () => {
    const { message, tally } = decode(whole);
    expect(message).toEqual({ role: "assistant", content: "hi" });
    expect(tally).toMatchObject({ finishReason: "length", usage, id: "c1", model: "m" });
  });

  test("a JSON document can call tools without content or ids, with arguments as an object", () => {
    const tool_calls = [{ function: { name: "f", arguments: { x: 1 } } }, { function: { name: "g", arguments: "" } }];
    expect(messageOf({ content: null, tool_calls })).toEqual({
      role: "assistant",
      content: "",
      tool_calls: [
        { id: "call_0", type: "function", function: { name: "f", arguments: '{"x":1}' } },
        { id: "call_1", type: "function", function: { name: "g", arguments: "" } },
      ],
    });
  });

  test("a JSON document is complete without a finish reason", () => {
    expect(decode({ choices: [{ message: { content: "hi" } }] }).tally.finishReason).toBe("stop");
  });

  test("a JSON document without an answer is malformed", () => {
    for (const value of [{}, { choices: [] }, { choices: [{ message: { content: 7 } }] }, "{broken"]) {
      expect(() => decode(value)).toThrow("no readable choices");
    }
    expect(() => decode("<html>")).toThrow("web page");
  });

  test("a JSON document with an error object fails with its message", () => {
    expect(() => decode({ error: { message: "no capacity" } })).toThrow("no capacity");
    expect(() => decode([{ error: { message: "no capacity" } }])).toThrow("no capacity");
  });
});
