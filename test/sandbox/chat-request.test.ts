import { describe, expect, test } from "vitest";
import { readChatRequest } from "../../src/sandbox/chat-request.ts";
import { ApiError } from "../../src/sandbox/errors.ts";

const user = { role: "user", content: "hi" };
const tool = {
  type: "function",
  function: { name: "look", description: "Looks.", parameters: { type: "object", properties: {}, required: [] } },
};
const toolOf = (fields: object) => ({ tools: [{ type: "function", function: { name: "a", ...fields } }] });
const image = (url: unknown) => ({ role: "user", content: [{ type: "image_url", image_url: { url } }] });

function verdict(fields: Record<string, unknown>): string {
  try {
    readChatRequest({ model: "sandbox-chat", messages: [user], ...fields });
    return "accepted";
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    expect(error.status).toBe(400);
    expect(error.message).toContain(error.param);
    return `${error.code} ${error.param}`;
  }
}

describe("the sandbox refuses a chat completion request", () => {
  test.each<[string, Record<string, unknown>, string]>([
    ["model is required", { model: undefined }, "missing_required_parameter model"],
    ["model is a string", { model: 7 }, "invalid_type model"],
    ["model is not empty", { model: "" }, "string_below_min_length model"],
    ["messages is required", { messages: undefined }, "missing_required_parameter messages"],
    ["messages is an array", { messages: "hi" }, "invalid_type messages"],
    ["messages is not empty", { messages: [] }, "empty_array messages"],
    ["stream is a boolean", { stream: "true" }, "invalid_type stream"],
    ["temperature is a number", { temperature: "1" }, "invalid_type temperature"],
    ["temperature is at least 0", { temperature: -0.1 }, "number_below_min_value temperature"],
    ["temperature is at most 2", { temperature: 2.1 }, "number_above_max_value temperature"],
    ["top_p is at least 0", { top_p: -0.1 }, "number_below_min_value top_p"],
    ["top_p is at most 1", { top_p: 1.1 }, "number_above_max_value top_p"],
    ["max_tokens is an integer", { max_tokens: 1.5 }, "invalid_type max_tokens"],
    ["max_tokens is at least 1", { max_tokens: 0 }, "number_below_min_value max_tokens"],
    ["stop is a string or an array", { stop: 5 }, "invalid_type stop"],
    ["stop holds strings", { stop: ["a", 5] }, "invalid_type stop[1]"],
    ["presence_penalty is at least -2", { presence_penalty: -2.1 }, "number_below_min_value presence_penalty"],
    ["presence_penalty is at most 2", { presence_penalty: 2.1 }, "number_above_max_value presence_penalty"],
    ["frequency_penalty is at least -2", { frequency_penalty: -2.1 }, "number_below_min_value frequency_penalty"],
    ["frequency_penalty is at most 2", { frequency_penalty: 2.1 }, "number_above_max_value frequency_penalty"],
    ["response_format is an object", { response_format: "json" }, "invalid_type response_format"],
    ["response_format has a known type", { response_format: { type: "xml" } }, "invalid_value response_format.type"],
    [
      "json_schema has a schema",
      { response_format: { type: "json_schema", json_schema: { name: "a" } } },
      "missing_required_parameter response_format.json_schema.schema",
    ],
    ["tools is an array", { tools: {} }, "invalid_type tools"],
    ["tool_choice needs a tool", { tools: [], tool_choice: "auto" }, "invalid_value tool_choice"],
    ["a tool's name has no dots", toolOf({ name: "a.b" }), "invalid_value tools[0].function.name"],
    ["a tool may have no parameters", toolOf({ parameters: undefined }), "accepted"],
    ["parameters may be empty", toolOf({ parameters: {} }), "accepted"],
    [
      "parameters that are not empty have a type",
      toolOf({ parameters: { properties: {} } }),
      "invalid_value tools[0].function.parameters.type",
    ],
    [
      "a property's schema is an object or a boolean",
      toolOf({ parameters: { type: "object", properties: { a: true, b: false, c: {} } } }),
      "accepted",
    ],
    [
      "a property's schema is no string",
      toolOf({ parameters: { type: "object", properties: { a: "string" } } }),
      "invalid_type tools[0].function.parameters.properties.a",
    ],
    ["a tool is a function", { tools: [{ ...tool, type: "web" }] }, "invalid_value tools[0].type"],
    ["a tool has a name", toolOf({ name: undefined }), "missing_required_parameter tools[0].function.name"],
    [
      "a tool's parameters are an object's",
      toolOf({ parameters: { type: "string" } }),
      "invalid_value tools[0].function.parameters.type",
    ],
    ["two tools have two names", { tools: [tool, tool] }, "invalid_value tools[1].function.name"],
    ["tool_choice has a known value", { tools: [tool], tool_choice: "maybe" }, "invalid_value tool_choice"],
    ["tool_choice needs tools", { tool_choice: "auto" }, "invalid_value tool_choice"],
    [
      "tool_choice names a tool of the request",
      { tools: [tool], tool_choice: { type: "function", function: { name: "b" } } },
      "invalid_value tool_choice.function.name",
    ],
    ["user is a string", { user: 5 }, "invalid_type user"],
    ["an unknown field is named", { temprature: 1 }, "unknown_parameter temprature"],
    ["one choice only", { n: 2 }, "invalid_value n"],
    ["no log probabilities", { logprobs: true }, "invalid_value logprobs"],
    ["stream_options needs stream", { stream_options: { include_usage: true } }, "invalid_value stream_options"],
  ])("the sandbox refuses a chat completion request: %s", (_rule, fields, expected) =>
    expect(verdict(fields)).toBe(expected),
  );

  test.each<[string, unknown, string]>([
    ["role is required", { content: "hi" }, "missing_required_parameter messages[0].role"],
    ["role is one of four", { role: "developer", content: "hi" }, "invalid_value messages[0].role"],
    ["a message is an object", "hi", "invalid_type messages[0]"],
    ["content is required", { role: "user" }, "missing_required_parameter messages[0].content"],
    ["content is a string or parts", { role: "user", content: 5 }, "invalid_type messages[0].content"],
    ["content is not null", { role: "user", content: null }, "invalid_type messages[0].content"],
    ["parts are not empty", { role: "user", content: [] }, "empty_array messages[0].content"],
    [
      "a part has a known type",
      { role: "user", content: [{ type: "video" }] },
      "invalid_value messages[0].content[0].type",
    ],
    [
      "a text part has text",
      { role: "user", content: [{ type: "text" }] },
      "missing_required_parameter messages[0].content[0].text",
    ],
    ["an image part has a url", image(undefined), "missing_required_parameter messages[0].content[0].image_url.url"],
    ["only users show pictures", { ...image("x"), role: "system" }, "invalid_value messages[0].content[0].type"],
    ["name is a string", { ...user, name: 5 }, "invalid_type messages[0].name"],
    [
      "tool_call_id belongs to tool messages",
      { ...user, tool_call_id: "a" },
      "unknown_parameter messages[0].tool_call_id",
    ],
    [
      "a tool message has a tool_call_id",
      { role: "tool", content: "x" },
      "missing_required_parameter messages[0].tool_call_id",
    ],
  ])("the sandbox refuses a message: %s", (_rule, message, expected) =>
    expect(verdict({ messages: [message] })).toBe(expected),
  );

  test("the sandbox accepts all thirteen fields at the edges of their ranges", () => {
    const fields = {
      stream: true,
      max_tokens: 1,
      stop: ["a", "b"],
      response_format: { type: "json_object" },
      tools: [tool],
      tool_choice: { type: "function", function: { name: "look" } },
      user: "u",
    };
    const low = { temperature: 0, top_p: 0, presence_penalty: -2, frequency_penalty: -2 };
    const high = { temperature: 2, top_p: 1, presence_penalty: 2, frequency_penalty: 2 };
    expect([verdict({ ...fields, ...low }), verdict({ ...fields, ...high })]).toEqual(["accepted", "accepted"]);
  });

  test("the sandbox treats null as an absent optional field, as SDKs send it", () => {
    const names = [
      ..."stream temperature top_p max_tokens stop presence_penalty frequency_penalty".split(" "),
      ..."response_format tools tool_choice user seed n stream_options".split(" "),
    ];
    expect(verdict(Object.fromEntries(names.map((name) => [name, null])))).toBe("accepted");
  });

  test("the sandbox accepts the extra fields of SDKs", () => {
    const beyond = {
      stream: true,
      stream_options: { include_usage: true },
      n: 1,
      seed: 7,
      max_completion_tokens: 9,
      metadata: { a: "b" },
      store: false,
      logprobs: false,
      reasoning_effort: "low",
      prediction: { type: "content", content: "as before" },
      prompt_cache_retention: "24h",
    };
    expect(verdict(beyond)).toBe("accepted");
  });

  test("the sandbox accepts calls with the fields that SDKs add while they read an answer", () => {
    const call = { id: "a", type: "function", function: { name: "look", arguments: "{}", parsed_arguments: {} } };
    const messages = [
      user,
      { role: "assistant", content: "", parsed: null, tool_calls: [{ ...call, index: 0 }] },
      { role: "tool", content: "x", tool_call_id: "a" },
    ];
    expect(verdict({ messages })).toBe("accepted");
  });

  test("the sandbox accepts all four roles, name, parts and an answer with its SDK fields", () => {
    const calls = [{ id: "a", type: "function", function: { name: "look", arguments: "{}" } }];
    const messages = [
      { role: "system", content: "Be brief." },
      { ...image("https://example.com/a.png"), name: "Ada" },
      { role: "assistant", content: null, tool_calls: calls, refusal: null, annotations: [] },
      { role: "tool", content: [{ type: "text", text: "seen" }], tool_call_id: "a" },
      { role: "assistant", content: "done", name: "bot" },
    ];
    expect(verdict({ messages })).toBe("accepted");
  });
});
