import { describe, expect, test } from "vitest";
import { parseCompletion, toChunks } from "../../src/gateway/completion.ts";
import { createSafeText } from "../../src/gateway/safe-text.ts";

const safe = createSafeText([]);
const parse = (value: unknown) => parseCompletion(JSON.stringify(value), safe);
const usage = { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 };
const whole = {
  id: "c1",
  object: "chat.completion",
  created: 1,
  model: "m",
  choices: [{ index: 0, message: { role: "assistant", content: "hi" }, finish_reason: "length" }],
  usage,
};

describe("a whole answer", () => {
  test("is read as the interface shows it", () => {
    expect(parse(whole)).toEqual(whole);
  });

  test("may call tools with no content, and arguments as an object", () => {
    const tool_calls = [{ id: "a", type: "function", function: { name: "f", arguments: { x: 1 } } }];
    const { choices } = parse({
      choices: [{ message: { role: "assistant", content: null, tool_calls }, finish_reason: "tool_calls" }],
    });
    expect(choices[0]).toEqual({
      index: 0,
      message: {
        role: "assistant",
        content: "",
        tool_calls: [{ id: "a", type: "function", function: { name: "f", arguments: '{"x":1}' } }],
      },
      finish_reason: "tool_calls",
    });
  });

  test("may have calls without ids, and say its text in parts or as a refusal", () => {
    const messageOf = (message: unknown) => parse({ choices: [{ message }] }).choices[0]?.message;
    const tool_calls = [{ function: { name: "f", arguments: { x: 1 } } }];
    expect(messageOf({ content: null, tool_calls })?.tool_calls).toEqual([
      { id: "", type: "function", function: { name: "f", arguments: '{"x":1}' } },
    ]);
    expect(messageOf({ content: [{ type: "text", text: "a" }, { type: "thinking", text: "no" }, null] })?.content).toBe(
      "a",
    );
    expect(messageOf({ content: null, refusal: "I will not." })?.content).toBe("I will not.");
  });

  test("drops fields that the interface does not know, but for what was thought, which has one name", () => {
    const message = { role: "assistant", content: "hi", refusal: null, reasoning_content: "hmm" };
    expect(parse({ ...whole, system_fingerprint: "x", choices: [{ message }] }).choices[0]?.message).toEqual({
      role: "assistant",
      content: "hi",
      reasoning: "hmm",
    });
  });

  test("that is none is malformed", () => {
    const wrong = [
      {},
      { choices: [] },
      { choices: [{}] },
      { choices: [{ message: { content: 7 } }] },
      { choices: [{ message: { content: "x", tool_calls: [{ id: "a" }] } }] },
    ];
    for (const value of wrong) expect(() => parse(value)).toThrow("no readable choices");
    expect(() => parseCompletion("", safe)).toThrow("empty");
    expect(() => parseCompletion("<html>", safe)).toThrow("web page");
    expect(() => parseCompletion("{broken", safe)).toThrow("no readable choices");
  });

  test("that is an error object says its words", () => {
    expect(() => parse({ error: { message: "no capacity" } })).toThrow("no capacity");
    expect(() => parse([{ error: { message: "no capacity" } }])).toThrow("no capacity");
  });
});

test("Chunks made of a whole answer carry everything in it, and usage only when there is any", () => {
  expect(
    toChunks(parse(whole)).map(({ choices, usage }) => [choices[0]?.delta, choices[0]?.finish_reason, usage]),
  ).toEqual([
    [{ role: "assistant", content: "hi" }, null, undefined],
    [{}, "length", undefined],
    [undefined, undefined, usage],
  ]);
  expect(toChunks(parse({ choices: whole.choices }))).toHaveLength(2);
});

test("of several answers where one was asked for, the first is the one", () => {
  const [choice] = whole.choices;
  const second = { index: 1, message: { role: "assistant", content: "ho" }, finish_reason: "stop" };
  const contents = toChunks(parse({ choices: [choice, second] })).map(({ choices }) => choices[0]?.delta.content);
  expect(contents).toEqual(["hi", undefined]);
});
