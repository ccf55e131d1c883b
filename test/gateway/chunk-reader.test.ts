import { array, assert, constantFrom, property } from "fast-check";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import {
  type CallFragment,
  createPlaceOf,
  createReadChunk,
  createRepeatReader,
  readUsage,
} from "../../src/gateway/chunk-reader.ts";
import { type AssistantMessage, applyDelta } from "../../src/gateway/chunks.ts";

/** The message that these deltas produce. Undefined if one of them is refused. */
function assemble(...deltas: unknown[]): AssistantMessage | undefined {
  const read = createReadChunk("first m");
  let message: AssistantMessage = { role: "assistant", content: "" };
  for (const delta of deltas) {
    const choice = read({ choices: [{ index: 0, delta }] })?.choices[0];
    if (choice === undefined) return undefined;
    message = applyDelta(message, choice.delta);
  }
  return message;
}

const call = (id: string, name: string, args: string) => ({
  id,
  type: "function",
  function: { name, arguments: args },
});

describe("tool calls in chunks", () => {
  test("tool calls are assembled by index, whatever the order of their fragments", () => {
    const message = assemble(
      { tool_calls: [{ index: 1, ...call("b", "second", "") }] },
      { tool_calls: [{ index: 0, ...call("a", "first", '{"x"') }] },
      { tool_calls: [{ index: 1, function: { arguments: "{}" } }] },
      { tool_calls: [{ index: 0, function: { arguments: ":1}" } }] },
    );
    expect(message?.tool_calls).toEqual([call("a", "first", '{"x":1}'), call("b", "second", "{}")]);
  });

  test("tool calls keep their id and name if later fragments have empty ones", () => {
    const message = assemble(
      { tool_calls: [{ index: 0, ...call("a", "first", "{") }] },
      { tool_calls: [{ index: 0, id: "", type: "function", function: { name: "", arguments: "}" } }] },
      { tool_calls: [{ index: 0, id: null, function: { name: null, arguments: null } }] },
    );
    expect(message?.tool_calls).toEqual([call("a", "first", "{}")]);
  });

  test("the arguments of a tool call can be an object", () => {
    const message = assemble({ tool_calls: [{ index: 0, id: "a", function: { name: "f", arguments: { x: 1 } } }] });
    expect(message?.tool_calls?.[0]?.function.arguments).toBe('{"x":1}');
  });

  test("the client refuses a tool call with an absurd index, because it would create a list of that length", () => {
    for (const index of [-1, 128, 1e9])
      expect(assemble({ tool_calls: [{ index, ...call("a", "f", "") }] })).toBeUndefined();
  });

  test("the client ignores tool calls that are null", () => {
    expect(assemble({ content: "a", tool_calls: null })).toEqual({ role: "assistant", content: "a" });
  });
});

describe("the text of a chunk", () => {
  const textOf = (delta: unknown) =>
    createReadChunk("first m")({ choices: [{ index: 0, delta }] })?.choices[0]?.delta.content;

  test("the text of a chunk is the text of its parts, without the model's thoughts", () => {
    const thinking = { type: "thinking", thinking: [{ type: "text", text: "hm" }] };
    expect(textOf({ content: [thinking, { type: "text", text: "a" }, { type: "text", text: "b" }] })).toBe("ab");
    expect(textOf({ content: [] })).toBe("");
  });

  test("the text of a chunk is the refusal if there is no other text", () => {
    expect(textOf({ content: null, refusal: "I will not." })).toBe("I will not.");
    expect(textOf({ content: "a", refusal: "I will not." })).toBe("a");
    expect(textOf({ content: null, refusal: null })).toBe(null);
  });

  test("a final message does not repeat the text of the deltas", () => {
    const read = createReadChunk("first m");
    const textIn = (choice: object) => read({ choices: [choice] })?.choices[0]?.delta.content;
    expect(textIn({ delta: { content: "all of it" } })).toBe("all of it");
    expect(textIn({ message: { content: "all of it" }, finish_reason: "stop" })).toBeUndefined();
  });

  test("the text of a chunk is the text of the first choice, wherever that choice is in the list", () => {
    const choice = (index: number, content: string) => ({ index, delta: { content }, finish_reason: null });
    expect(createReadChunk("first m")({ choices: [choice(1, "other"), choice(0, "mine")] })?.choices).toEqual([
      choice(0, "mine"),
    ]);
  });
});

describe("one chunk of a stream", () => {
  test("the client refuses a chunk whose parts do not fit the wire types", () => {
    const read = createReadChunk("first m");
    const wrong = [
      undefined,
      null,
      "text",
      [],
      { choices: [null] },
      { choices: [{ delta: "text" }] },
      { choices: [{ delta: { content: 7 } }] },
      { choices: [{ delta: { tool_calls: {} } }] },
      { choices: [{ delta: { tool_calls: [null] } }] },
      { choices: [{ delta: { tool_calls: [{ index: 0, function: { arguments: 7 } }] } }] },
    ];
    for (const value of wrong) expect(read(value)).toBeUndefined();
  });

  test("the client fills in missing fields of a chunk", () => {
    const read = createReadChunk("first m");
    expect(read({ id: "x" })?.choices).toEqual([]);
    expect(read({ choices: [{}] })?.choices).toEqual([{ index: 0, delta: {}, finish_reason: null }]);
    expect(read({ choices: [{ message: { content: "a" }, finish_reason: "" }] })?.choices[0]).toMatchObject({
      delta: { content: "a" },
      finish_reason: null,
    });
  });
});

test("the client reads usage if both counts are present, and computes a missing total", () => {
  expect(readUsage({ prompt_tokens: 1, completion_tokens: 2 })).toEqual({
    prompt_tokens: 1,
    completion_tokens: 2,
    total_tokens: 3,
  });
  for (const value of [null, 7, {}, { prompt_tokens: "1", completion_tokens: 2 }]) {
    expect(readUsage(value)).toBeUndefined();
  }
});

const part = (index: unknown, id: string, name: string, args: string): CallFragment => ({ index, id, name, args });

/** The slot for each fragment of one answer. */
function placesOf(...fragments: CallFragment[]): (number | undefined)[] {
  const placeOf = createPlaceOf();
  return fragments.map((fragment) => placeOf(fragment));
}

test("the client refuses a call with an endless name or id", () => {
  const named = (id: string, name: string) => assemble({ tool_calls: [{ index: 0, id, function: { name } }] });
  expect(named("i".repeat(5_000), "n".repeat(1_000))).toBeDefined();
  expect(named("a", "n".repeat(1_001))).toBeUndefined();
  expect(named("i".repeat(65_537), "n")).toBeUndefined();
});

describe("the slot of a tool call", () => {
  test("finding a call's slot does not parse long arguments for every fragment", () => {
    const parse = vi.spyOn(JSON, "parse");
    onTestFinished(() => parse.mockRestore());
    const more = Array.from({ length: 100 }, () => part(0, "", "f", "}"));
    placesOf(part(0, "", "f", `["${"x".repeat(40_000)}}`), ...more);
    expect(parse).not.toHaveBeenCalled();
  });

  test.each<[string, CallFragment[], number[]]>([
    [
      "its index, even as a string",
      [part(1, "b", "g", ""), part(0, "a", "f", "{"), part(1, "", "", "{}"), part("0", "", "", "}")],
      [1, 0, 1, 0],
    ],
    [
      "new for a new id at the same index",
      [part(0, "a", "f", '{"x":1}'), part(0, "b", "f", '{"x"'), part(0, "", "", ":2}"), part(0, "c", "g", "{}")],
      [0, 1, 1, 2],
    ],
    [
      "never another call's",
      [part(0, "a", "f", "{}"), part(0, "b", "f", "{}"), part(0, "c", "f", "{}"), part(1, "d", "f", "{}")],
      [0, 1, 2, 3],
    ],
    ["the same for a repeated id", [part(0, "a", "f", "{"), part(0, "a", "f", "}"), part(0, "a", "f", "")], [0, 0, 0]],
    [
      "the same for a new id in each fragment",
      [part(0, "r1", "f", ""), part(0, "r2", "f", '{"x"'), part(0, "r3", "f", ":1}"), part(0, "r4", "", "")],
      [0, 0, 0, 0],
    ],
    [
      "the same for a repeated id without an index",
      [part(undefined, "a", "f", "{"), part(undefined, "a", "f", "}")],
      [0, 0],
    ],
    [
      "new for another id without an index",
      [part(undefined, "a", "f", ""), part(undefined, "b", "f", "{}"), part(undefined, "", "", "")],
      [0, 1, 1],
    ],
    [
      "new for a name after complete arguments",
      [part(undefined, "", "f", "{}"), part(undefined, "", "f", '{"x":'), part(undefined, "", "f", "1}")],
      [0, 1, 1],
    ],
    ["the same for a name without arguments", [part(null, "", "f", "{}"), part(null, "", "f", "")], [0, 0]],
    [
      "the same for white space after complete arguments",
      [part(0, "", "f", "{}"), part(0, "", "", " \n"), part(0, "", "f", '{"x":{}'), part(0, "", "f", "}")],
      [0, 0, 1, 1],
    ],
  ])("the slot of a call is %s", (_, fragments, slots) => expect(placesOf(...fragments)).toEqual(slots));

  test("an absurd index, or a call beyond the limit, gets no slot", () => {
    expect(placesOf(...[-1, 128, 1e9].map((index) => part(index, "", "", "")))).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    const many = placesOf(...Array.from({ length: 130 }, (_, at) => part(0, `id${at}`, "f", "{}")));
    expect([many[127], many[128], many[129]]).toEqual([127, undefined, undefined]);
  });
});

describe("an event that repeats the previous one except for its text", () => {
  const write = (choice: object, rest: object = {}) =>
    JSON.stringify({ id: "c", choices: [{ index: 0, ...choice }], ...rest });
  const say = (content: unknown, rest?: object) => write({ delta: { content }, finish_reason: null }, rest);
  const parse = (data: string) => createReadChunk("first m")(JSON.parse(data));

  test("the client reads a repeated event without a parser, even with spaces between its fields", () => {
    for (const toEvent of [say, (text: string) => say(text).replaceAll(":", ": ")]) {
      const repeats = createRepeatReader();
      const [first, next] = [toEvent("Good"), toEvent(" morning 😀")];
      expect(repeats.read(first)).toBeUndefined();
      repeats.note(first, parse(first) as never);
      expect(repeats.read(next)?.choices).toEqual(parse(next)?.choices);
    }
  });

  test("the client reads a repeated event exactly as the parser does, whatever events come in between", () => {
    const texts = ["a", "b", "content", "type", "", 'a"b', "a\\", "a\n", "\u2028", "é😀", null];
    const events = [
      ...texts.map((text) => say(text)),
      ...texts.map((text) => say(text, { usage: null })),
      ...texts.map((text) => write({ delta: { content: text, reasoning: "hm" } })),
      ...["a", "b"].flatMap((text) => [
        write({ delta: { content: text }, message: { content: "a" } }),
        write({ delta: { content: [{ type: "text", text }] } }),
        write({ delta: { content: [{ type: "text", text: "type" }] }, message: { content: text } }),
        write({ delta: { content: text }, finish_reason: "stop" }),
        write({ delta: { refusal: text, content: "" } }),
        say(text, { usage: { prompt_tokens: 1, completion_tokens: 2 } }),
      ]),
      write({ delta: { tool_calls: [{ index: 0, function: { name: "f" } }] } }),
      '{"choices":[{"delta":{"content":"a","content":"b"}}]}',
      '{"choices":[{"delta":{"content":"b","content":"b"}}]}',
    ];
    assert(
      property(array(constantFrom(...events), { maxLength: 8 }), (played) => {
        const repeats = createRepeatReader();
        for (const data of played) {
          const chunk = parse(data);
          const [choice] = repeats.read(data)?.choices ?? [chunk?.choices[0]];
          expect(choice?.delta.content).toEqual(chunk?.choices[0]?.delta.content);
          expect(choice?.finish_reason).toEqual(chunk?.choices[0]?.finish_reason);
          expect(choice?.delta.reasoning).toEqual(chunk?.choices[0]?.delta.reasoning);
          if (chunk !== undefined) repeats.note(data, chunk);
        }
      }),
      { numRuns: 500 },
    );
  });
});
