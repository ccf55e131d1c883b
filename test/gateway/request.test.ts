import { describe, expect, test } from "vitest";
import type { ChatMessage, ToolDefinition } from "../../src/gateway/chunks.ts";
import { GatewayError } from "../../src/gateway/errors.ts";
import { type ChatRequest, toChatBody, toChatJson } from "../../src/gateway/request.ts";

const user: ChatMessage = { role: "user", content: "hello" };
const tool: ToolDefinition = {
  type: "function",
  function: {
    name: "look",
    description: "Looks.",
    parameters: { type: "object", properties: { at: { type: "string" } }, required: ["at"] },
  },
};
const call = { id: "call_1", type: "function", function: { name: "look", arguments: "{}" } } as const;

const toJson = (request: ChatRequest, extra = {}) => toChatJson(toChatBody(request, extra), "first m");

function wire(fields: Record<string, unknown>): Record<string, unknown> {
  const request = { model: "m", messages: [user], ...fields } as unknown as ChatRequest;
  return JSON.parse(toJson(request)) as Record<string, unknown>;
}

function problem(fields: Record<string, unknown>): string {
  try {
    wire(fields);
  } catch (error) {
    if (error instanceof GatewayError && error.kind === "rejected") return error.message;
    throw error;
  }
  return "none";
}

describe("a valid request", () => {
  test("a valid request is sent with all thirteen fields unchanged", () => {
    const fields = {
      messages: [
        { role: "system", content: "Be brief.", name: "admin" },
        {
          role: "user",
          content: [
            { type: "text", text: "what is this" },
            { type: "image_url", image_url: { url: "https://example.org/a.png", detail: "low" } },
            { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } },
          ],
          name: "Ada",
        },
        { role: "assistant", content: "", tool_calls: [call] },
        { role: "tool", content: "a cat", tool_call_id: "call_1" },
      ],
      temperature: 0,
      top_p: 1,
      max_tokens: 1,
      stop: ["a", "b"],
      presence_penalty: -2,
      frequency_penalty: 2,
      response_format: { type: "json_schema", json_schema: { name: "x", schema: {} } },
      tools: [tool],
      tool_choice: { type: "function", function: { name: "look" } },
      user: "u_1",
    };
    expect(wire(fields)).toEqual({ model: "m", ...fields, stream: true });
  });

  test("a valid request is sent as a stream and without undefined fields", () => {
    expect(wire({ temperature: undefined, tools: undefined })).toEqual({ model: "m", messages: [user], stream: true });
  });

  test("a valid request can have each string form of tool_choice and of stop", () => {
    for (const tool_choice of ["auto", "none", "required"]) {
      expect(wire({ tools: [tool], tool_choice })).toMatchObject({ tool_choice });
    }
    expect(wire({ stop: "END" })).toMatchObject({ stop: "END" });
  });

  test("a valid request can have tools without parameters, and any additionalProperties", () => {
    const properties = { a: true, b: false, c: {} };
    for (const parameters of [undefined, {}, { type: "object" }, { type: "object", properties }]) {
      const tools = [{ type: "function", function: { name: "f", ...(parameters && { parameters }) } }];
      expect(wire({ tools })).toMatchObject({ tools });
    }
  });

  test("a valid request can repeat a call by a name that no tool could have", () => {
    const calls = [{ ...call, function: { name: "functions.look", arguments: "{}" } }];
    const answer = { role: "assistant", content: "", tool_calls: calls };
    expect(wire({ messages: [user, answer] })).toMatchObject({ messages: [user, answer] });
  });

  test("a valid request is sent without empty lists, which many servers reject", () => {
    const messages = [user, { role: "assistant", content: "hi", tool_calls: [] }];
    expect(wire({ messages, tools: [], tool_choice: "auto", stop: [] })).toEqual({
      model: "m",
      messages: [user, { role: "assistant", content: "hi" }],
      stream: true,
    });
  });

  test("a valid request includes the operator's extra fields, unless it sets these fields itself", () => {
    const request: ChatRequest = { model: "m", messages: [{ role: "user", content: "hi" }] };
    const body = toJson({ ...request, temperature: 0 }, { temperature: 1, top_p: 0.5, reasoning_effort: "low" });
    expect(JSON.parse(body)).toEqual({ ...request, temperature: 0, top_p: 0.5, reasoning_effort: "low", stream: true });
  });

  test("a valid request is sent with lone surrogates replaced", () => {
    const request = { model: "m", messages: [{ role: "user", content: "a\uD83Db" }] } as ChatRequest;
    expect(toJson(request)).toContain("a\uFFFDb");
  });
});

describe("a request that breaks a rule", () => {
  const toolOf = (fields: object) => ({ tools: [{ type: "function", function: fields }] });
  const withParameters = (parameters: object) => toolOf({ name: "f", parameters });
  const said = (content: unknown) => ({ messages: [{ role: "user", content }] });
  const cases: Array<[string, Record<string, unknown>, string]> = [
    ["model is required", { model: undefined }, "model: "],
    ["model is a string", { model: 7 }, "model: "],
    ["model is not empty", { model: "" }, "model: "],
    ["messages are required", { messages: undefined }, "messages: "],
    ["messages are not empty", { messages: [] }, "messages: "],
    ["role is one of four", { messages: [{ role: "robot", content: "x" }] }, "messages[0].role: "],
    ["content is required", { messages: [user, { role: "user" }] }, "messages[1].content: "],
    ["content is a string or parts", said(7), "messages[0].content: "],
    ["parts are not empty", said([]), "messages[0].content: "],
    ["a part has a known type", said([{ type: "video" }]), "messages[0].content[0].type: "],
    [
      "an image has an address",
      said([{ type: "image_url", image_url: { url: "file:///x" } }]),
      "messages[0].content[0].image_url.url: ",
    ],
    ["name is a string", { messages: [{ ...user, name: 7 }] }, "messages[0].name: "],
    ["a tool message names its call", { messages: [{ role: "tool", content: "x" }] }, "messages[0].tool_call_id: "],
    ["only a tool message names a call", { messages: [{ ...user, tool_call_id: "x" }] }, '"tool_call_id"'],
    ["temperature is at least 0", { temperature: -0.1 }, "temperature: "],
    ["temperature is at most 2", { temperature: 2.1 }, "temperature: "],
    ["temperature is a number", { temperature: "1" }, "temperature: "],
    ["temperature is a finite number", { temperature: Number.NaN }, "temperature: "],
    ["top_p is at least 0", { top_p: -1 }, "top_p: "],
    ["top_p is at most 1", { top_p: 1.5 }, "top_p: "],
    ["max_tokens is an integer", { max_tokens: 1.5 }, "max_tokens: "],
    ["max_tokens is positive", { max_tokens: 0 }, "max_tokens: "],
    ["presence_penalty is at least -2", { presence_penalty: -3 }, "presence_penalty: "],
    ["presence_penalty is at most 2", { presence_penalty: 3 }, "presence_penalty: "],
    ["frequency_penalty is at least -2", { frequency_penalty: -3 }, "frequency_penalty: "],
    ["frequency_penalty is at most 2", { frequency_penalty: 3 }, "frequency_penalty: "],
    ["stop is a string or strings", { stop: [7] }, "stop[0]: "],
    ["response_format is an object", { response_format: "json_object" }, "response_format: "],
    ["response_format has a type", { response_format: {} }, "response_format.type: "],
    ["a tool is a function", { tools: [{ ...tool, type: "code" }] }, "tools[0].type: "],
    ["a function has a name", toolOf({ description: "x" }), "tools[0].function.name: "],
    ["a function's name has no dots", toolOf({ name: "a.b" }), "tools[0].function.name: "],
    [
      "parameters that are not empty have a type",
      withParameters({ properties: {} }),
      "tools[0].function.parameters.type: ",
    ],
    ["parameters are an object schema", withParameters({ type: "string" }), "tools[0].function.parameters.type: "],
    [
      "properties map names to schemas",
      withParameters({ type: "object", properties: { a: 7 } }),
      "tools[0].function.parameters.properties.a: ",
    ],
    [
      "required is a list of names",
      withParameters({ type: "object", required: [7] }),
      "tools[0].function.parameters.required[0]: ",
    ],
    ["tool_choice has a known form", { tools: [tool], tool_choice: "any" }, "tool_choice: "],
    ["user is a string", { user: 7 }, "user: "],
    ["no other field", { stream_options: { include_usage: true } }, '"stream_options"'],
    ["no other field: stream", { stream: true }, '"stream"'],
  ];
  for (const [rule, fields, place] of cases)
    test(`the client refuses a request: ${rule}`, () => expect(problem(fields)).toContain(place));

  test("the error names all problems of a request that breaks rules in one message", () => {
    const message = problem({ model: "", temperature: 3, max_tokens: 0.5, extra: 1 });
    for (const field of ["model", "temperature", "max_tokens", '"extra"']) expect(message).toContain(field);
  });

  test("the error about a request does not repeat its content", () => {
    const message = problem({
      messages: [{ role: "canary-1", content: "x" }],
      tool_choice: "canary-2",
      stop: { a: "canary-3" },
    });
    expect(message).not.toContain("canary");
  });

  test("the client refuses a request that cannot be JSON", () => {
    const loop: Record<string, unknown> = { type: "json_object" };
    loop.self = loop;
    expect(problem({ response_format: loop })).toContain("cannot be written as JSON");
  });
});
