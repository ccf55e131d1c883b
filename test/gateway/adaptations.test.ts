import { describe, expect, onTestFinished, test, vi } from "vitest";
import { recordingLog } from "../../lab/support/log.ts";
import { applyChanges, type Change, findChange } from "../../src/gateway/adaptations.ts";
import type { ChatMessage, ToolDefinition } from "../../src/gateway/chunks.ts";
import { GatewayError, type GatewayErrorOptions } from "../../src/gateway/errors.ts";
import { type ChatBody, type ChatRequest, toChatBody, toChatJson } from "../../src/gateway/request.ts";
import { start } from "../sandbox/sandbox.ts";
import {
  type Answer,
  chunk,
  DONE,
  event,
  events,
  FINISH,
  good,
  json,
  startFaultServer,
} from "../support/fault-server.ts";
import { connect, open, readAnswer } from "../support/gateway-client.ts";

const FROM = "first m";
const clock: ToolDefinition = {
  type: "function",
  function: { name: "clock", description: "The time.", parameters: { type: "object", properties: {} } },
};
const odd: ToolDefinition = {
  type: "function",
  function: {
    name: "wiki__find",
    description: "Finds a page.",
    parameters: {
      type: "object",
      properties: { count: { type: ["integer", "null"] }, page: { anyOf: [{ type: "null" }, { type: "string" }] } },
    },
  },
};
const picture = { type: "image_url" as const, image_url: { url: "data:image/png;base64,AAAA" } };
const call = { id: "call_abc", type: "function" as const, function: { name: "clock", arguments: "{}" } };
const attached = { from: FROM, fields: { reasoning_content: "hmm" } };

/** A request with every feature that a gateway can reject. */
const messages: ChatMessage[] = [
  { role: "system", content: "Be brief." },
  { role: "user", name: "ben", content: "Earlier talk." },
  { role: "user", name: "ada", content: "What time is it?" },
  { role: "assistant", content: "", tool_calls: [call] },
  { role: "tool", tool_call_id: "call_abc", content: "Noon." },
  { role: "user", content: [{ type: "text", text: "Look." }, picture] },
];
const full: ChatRequest = {
  model: "m",
  messages,
  temperature: 0.2,
  top_p: 0.5,
  presence_penalty: 0.1,
  frequency_penalty: 0.1,
  max_tokens: 100,
  stop: ["x"],
  response_format: { type: "json_object" },
  web_search_options: { search_context_size: "low" },
  user: "u_1",
  tools: [clock, odd],
  tool_choice: "auto",
};

function refusal(message: string, options: GatewayErrorOptions = {}): GatewayError {
  return new GatewayError("rejected", "The gateway refused the request (400).", {
    status: 400,
    quote: ` It said: ${message}`,
    ...options,
  });
}

const bodyOf = (fields: Partial<ChatRequest> = {}) => toChatBody({ ...full, ...fields });
const find = (error: GatewayError, body: ChatBody = bodyOf()) => findChange(error, body, []);

function adapt(name: string, fields: Partial<ChatRequest> = {}, detail = ""): Record<string, unknown> {
  return JSON.parse(toChatJson(applyChanges(bodyOf(fields), [{ name, detail }]), FROM)) as Record<string, unknown>;
}

/** Vendors' error messages, by the change that they require. They are quoted from documentation or public reports. */
const SAID: ReadonlyArray<readonly [name: string, words: string, options?: GatewayErrorOptions]> = [
  [
    "max_completion_tokens",
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
    { param: "max_tokens", code: "unsupported_parameter" },
  ],
  ["max_tokens", "max_tokens is too large: 99999. This model supports at most 16384 completion tokens."],
  [
    "temperature",
    "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.",
    { param: "temperature", code: "unsupported_value" },
  ],
  ["temperature", "invalid temperature: only 1 is allowed for this model"],
  ["temperature", "`temperature` may only be set to 1 when thinking is enabled."],
  ["temperature", "`temperature` and `top_p` cannot both be specified for this model. Please use only one."],
  ["presence_penalty", "Argument not supported on this model: presencePenalty"],
  ["stop", "Argument not supported on this model: stop"],
  ["response_format", "'response_format.type' must be 'json_schema' or 'text'"],
  ["web_search_options", "Unknown parameter: 'web_search_options'.", { param: "web_search_options" }],
  ["web_search_options", "litellm.UnsupportedParamsError: x does not support parameters: ['web_search_options']"],
  ["user", "body.user: Extra inputs are not permitted", { param: "user", code: "extra_forbidden", status: 422 }],
  ["user", "property 'user' is unsupported"],
  ["name", "At body -> messages -> 1 -> name: Extra inputs are not permitted"],
  ["name", "body.messages.1.user.name: Extra inputs are not permitted", { param: "messages.1.user.name" }],
  [
    "name",
    "'messages.1' : for 'role:user' the following must be satisfied[('messages.1' : property 'name' is unsupported)]",
  ],
  ["calls as words", "The `reasoning_content` in the thinking mode must be passed back to the API."],
  ["calls as words", "thinking is enabled but reasoning_content is missing in assistant tool call message at index 3"],
  ["calls as words", "Function call is missing a thought_signature in functionCall parts."],
  ["tools", "The gateway refused: gemma does not support tools"],
  ["tools", "No endpoints found that support tool use.", { status: 404 }],
  ["tools", "`tool calling` is not supported with this model"],
  ["tools", "Function calling is not enabled for models/gemma-3-27b-it"],
  ["tools", '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'],
  ["tools", "Unrecognized request argument supplied: tools"],
  ["tools", "no", { type: "invalid_request_error", code: "unsupported_feature", param: "tools" }],
  ["call ids", "Tool call id was call_abc but must be a-z, A-Z, 0-9, with a length of 9."],
  ["no empty text", "messages.3: text content blocks must be non-empty"],
  [
    "no empty text",
    "The text field in the ContentBlock object at messages.3.content.0 is blank. messages: text content blocks must be non-empty",
  ],
  ["no system prompt", "System role not supported"],
  ["no system prompt", "Developer instruction is not enabled for models/gemma-3-27b-it"],
  ["one message for each speaker", "Conversation roles must alternate user/assistant/user/assistant/..."],
  [
    "one message for each speaker",
    "After the (optional) system message(s), user or tool message(s) should alternate with assistant message(s).",
  ],
  ["pictures", "No endpoints found that support image input", { status: 404 }],
  ["pictures", "Invalid content type. image_url is only supported by certain models."],
  ["pictures", "gemma-2-9b is not a multimodal model"],
  ["pictures", "At most 0 image(s) may be provided in one request."],
  ["pictures", "messages[1]: unknown variant `image_url`, expected `text`", { status: 422 }],
  ["pictures", "no", { code: "unsupported_feature", param: "messages[0].content" }],
  [
    "plain schemas",
    "Invalid schema for function 'wiki__find': schema must have exactly one type",
    { param: "tools[1]" },
  ],
  [
    "plain schemas",
    "* GenerateContentRequest.tools[0].function_declarations[1].parameters.properties[count].type: must be specified",
  ],
];

describe("changes to a request that the gateway rejected", () => {
  for (const [name, words, options] of SAID) {
    test(`the client changes its request for ${name}: ${words}`, () =>
      expect(find(refusal(words, options))?.name).toBe(name));
  }

  test("the client also changes its request if a server reports an internal failure with the same words", () => {
    const jinja = "Jinja Exception: Conversation roles must alternate user/assistant/user/assistant/...";
    const error = new GatewayError("overloaded", jinja, { status: 500 });
    expect(find(error)?.name).toBe("one message for each speaker");
  });

  test.each([
    refusal("no", { code: "invalid_value", param: "messages" }),
    refusal("prompt is too long", { reason: "too-long", param: "messages[0].content", code: "unsupported_value" }),
    refusal("Your request was rejected", { reason: "filtered" }),
    new GatewayError("unreachable", "does not support tools"),
    new GatewayError("overloaded", "no", { code: "unsupported_feature", param: "tools", status: 503 }),
  ])("the client makes no change for a rejection about something else: $message", (error) => {
    expect(find(error)).toBeUndefined();
  });

  test("the client makes no change if the request does not contain the rejected part", () => {
    const plain = toChatBody({ model: "m", messages: [{ role: "user", content: "hi" }] });
    for (const [, words, options] of SAID) expect(find(refusal(words, options), plain)).toBeUndefined();
  });

  test("the client makes the next change if it has already made the first change", () => {
    const error = refusal("Unexpected role 'user' after role 'tool'");
    const first = find(error);
    expect(first?.name).toBe("one message for each speaker");
    const changes = [first as Change];
    expect(findChange(error, applyChanges(bodyOf(), changes), changes)?.name).toBe("an answer after results");
  });
});

describe("a changed request", () => {
  test.each(["temperature", "top_p", "presence_penalty", "frequency_penalty", "response_format", "stop", "user"])(
    "a changed request leaves %s out, and nothing else",
    (field) => {
      const { [field]: _left, ...rest } = adapt("none");
      expect(adapt(field)).toEqual(rest);
    },
  );

  test("a changed request limits its answer with max_completion_tokens", () => {
    const { max_tokens: _bound, ...rest } = adapt("none");
    expect(adapt("max_completion_tokens")).toEqual({ ...rest, max_completion_tokens: 100 });
  });

  test("a changed request has no user message directly after a tool result", () => {
    const { messages: spaced } = adapt("an answer after results") as { messages: ChatMessage[] };
    expect(spaced.slice(-3).map(({ role }) => role)).toEqual(["tool", "assistant", "user"]);
  });

  test("a changed request has its system prompt in the first user message", () => {
    const { messages: moved } = adapt("no system prompt") as { messages: ChatMessage[] };
    expect(moved[0]).toEqual({ role: "user", name: "ben", content: "Be brief.\n\nEarlier talk." });
    expect(moved).toHaveLength(messages.length - 1);
  });

  test("a changed request has call ids of nine letters and digits, the same for a call and its result", () => {
    const { messages: numbered } = adapt("call ids") as { messages: ChatMessage[] };
    const [asked, result] = [numbered[3], numbered[4]] as [
      { tool_calls: Array<{ id: string }> },
      { tool_call_id: string },
    ];
    expect(asked.tool_calls[0]?.id).toMatch(/^[a-zA-Z0-9]{9}$/);
    expect(result.tool_call_id).toBe(asked.tool_calls[0]?.id);
  });

  test("a changed request has calls and results as text if the model accepts no tools", () => {
    const plain = adapt("tools") as { messages: ChatMessage[]; tools?: unknown; tool_choice?: unknown };
    expect([plain.tools, plain.tool_choice]).toEqual([undefined, undefined]);
    expect(plain.messages.map(({ role }) => role)).toEqual(["system", "user", "user", "user", "user"]);
    expect(plain.messages[3]?.content).toContain("clock({}):\nNoon.");
  });

  test("a changed request turns only calls without extra fields of the gateway into text", () => {
    const own: ChatMessage[] = [
      ...messages,
      { role: "assistant", content: "", tool_calls: [{ ...call, id: "call_2" }], attached },
      { role: "tool", tool_call_id: "call_2", content: "One." },
    ];
    const { messages: kept } = adapt("calls as words", { messages: own }) as { messages: ChatMessage[] };
    expect(kept.map(({ role }) => role)).toEqual(["system", "user", "user", "user", "user", "assistant", "tool"]);
  });

  test("a changed request returns no extra fields if the gateway rejects them", () => {
    const own: ChatMessage[] = [
      { role: "user", content: "hi" },
      { role: "assistant", content: "", tool_calls: [call], attached },
    ];
    const error = refusal("property 'reasoning_content' is unsupported");
    expect(find(error, bodyOf({ messages: own }))?.name).toBe("attachments");
    expect(JSON.stringify(adapt("attachments", { messages: own }))).not.toContain("reasoning_content");
  });

  test("a changed request describes each argument of a tool with exactly one type", () => {
    const { tools } = adapt("plain schemas") as { tools: ToolDefinition[] };
    expect(tools[1]?.function.parameters).toEqual({
      type: "object",
      properties: { count: { type: "integer" }, page: { type: "string" } },
    });
  });

  test("a changed request drops the one tool whose schema is still rejected", () => {
    const error = refusal("Invalid schema for function 'wiki__find'", { param: "tools[1].function.parameters" });
    const plain = { name: "plain schemas", detail: "" };
    const change = findChange(error, applyChanges(bodyOf(), [plain]), [plain]);
    expect(change).toEqual({ name: "tool", detail: "wiki__find" });
    const { tools } = adapt("tool", {}, "wiki__find") as { tools: ToolDefinition[] };
    expect(tools.map((tool) => tool.function.name)).toEqual(["clock"]);
  });

  test("a changed request lists the tools of earlier calls if the gateway requires it", () => {
    const { tools: _tools, tool_choice: _choice, ...rest } = full;
    const body = toChatBody(rest);
    const words = "The toolConfig field must be defined when using toolUse and toolResult content blocks.";
    expect(find(refusal(words), body)?.name).toBe("tools of calls");
    const bedrock =
      "litellm.UnsupportedParamsError: Bedrock doesn't support tool calling without `tools=` param specified.";
    expect(find(refusal(bedrock), body)?.name).toBe("tools of calls");
    const changed = applyChanges(body, [{ name: "tools of calls", detail: "" }]);
    expect(changed).toMatchObject({ tools: [{ function: { name: "clock" } }], tool_choice: "none" });
  });

  test("a changed request has words instead of images, joined into one text", () => {
    const { messages: seen } = adapt("pictures") as { messages: ChatMessage[] };
    expect(seen.at(-1)?.content).toBe("Look.\n\n(You cannot see this image. Say so if it matters.)");
  });
});

const simple: ChatRequest = { model: "m", messages: [{ role: "user", content: "my secret words" }], user: "u_1" };
const extraForbidden: Answer = json(422, {
  detail: [{ type: "extra_forbidden", loc: ["body", "user"], msg: "Extra inputs are not permitted", input: "u_1" }],
});
const strict: Answer = (response, received) =>
  "user" in (received.json as object) ? extraForbidden(response, received) : good(response, received);
const hadUser = (received: ReadonlyArray<{ json: unknown }>) => received.map((one) => "user" in (one.json as object));

describe("a gateway that rejects part of a request", () => {
  test("the client omits the rejected part from the retry and from later requests to the same model", async () => {
    const { url, received } = await startFaultServer(strict);
    const gateway = connect(url);
    for (const model of ["m", "m", "other"]) {
      expect(await readAnswer(gateway, { ...simple, model }, open)).toMatchObject({ text: "Hello", error: undefined });
    }
    expect(hadUser(received)).toEqual([true, false, false, true, false]);
  });

  test("the client sends the rejected part again after ten minutes", async () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    onTestFinished(() => void vi.useRealTimers());
    const { url, received } = await startFaultServer(strict);
    const gateway = connect(url);
    await readAnswer(gateway, simple, open);
    vi.advanceTimersByTime(11 * 60_000);
    await readAnswer(gateway, simple, open);
    expect(hadUser(received)).toEqual([true, false, true, false]);
  });

  test("the client does not remember a change if the gateway rejects the changed request too", async () => {
    const { url, received } = await startFaultServer(extraForbidden);
    const gateway = connect(url);
    for (const _ of [1, 2]) expect((await readAnswer(gateway, simple, open)).error).toMatchObject({ status: 422 });
    expect(hadUser(received)).toEqual([true, false, true, false]);
  });

  test("the client can make several changes to one request, and returns their names to the caller", async () => {
    const refuseNames: Answer = (response, received) => {
      const { messages: sent, user } = received.json as { messages: Array<{ name?: string }>; user?: string };
      if (user !== undefined) return extraForbidden(response, received);
      const wrong = sent.findIndex(({ name }) => name !== undefined);
      if (wrong === -1) return good(response, received);
      const loc = ["body", "messages", wrong, "user", "name"];
      return json(422, { detail: [{ type: "extra_forbidden", loc, msg: "Extra inputs are not permitted" }] })(
        response,
        received,
      );
    };
    const { url } = await startFaultServer(refuseNames);
    const names: string[][] = [];
    const asked: ChatRequest = { ...simple, messages: [{ role: "user", name: "ada", content: "hi" }] };
    const how = { onAdapted: (changes: readonly string[]) => names.push([...changes]), onChunk() {} };
    await connect(url).streamChat(asked, open, how);
    expect(names).toEqual([["user", "name"]]);
  });

  test.each([
    ["with other spaces", "the pin is\n\n4711\nfor 0815", "no: the pin is 4711 for 0815"],
    [
      "behind letters whose lower case is longer",
      "the pin is 4711 for 0815",
      `${"İ".repeat(25)} the pin is 4711 for 0815`,
    ],
    ["from arguments of tools", "Hello", 'no: {"pin":"4711","for":"0815"}'],
  ])("the log hides users' words that a gateway repeats %s", async (_how, content, said) => {
    const { log, lines } = recordingLog();
    const { url } = await startFaultServer(json(400, { error: { message: said } }));
    const call = {
      id: "1",
      type: "function" as const,
      function: { name: "f", arguments: '{"pin":"4711","for":"0815"}' },
    };
    const messages: ChatRequest["messages"] = [
      { role: "user", content },
      { role: "assistant", content: "", tool_calls: [call] },
      { role: "tool", tool_call_id: "1", content: "ok" },
    ];
    const { error } = await readAnswer(connect(url, { log }), { ...simple, messages }, open);
    expect((error as GatewayError).logMessage).toContain("[…]");
    expect((error as GatewayError).logMessage).not.toMatch(/4711|0815/);
    expect(JSON.stringify(lines)).not.toMatch(/4711|0815/);
  });

  test("the sandbox's model for text alone answers a question with an image", async () => {
    const sandbox = await start();
    const gateway = connect(sandbox.url, { apiKey: "sk-sandbox-all" });
    const asked = {
      model: "sandbox-text",
      messages: [{ role: "user" as const, content: [{ type: "text" as const, text: "What is this?" }, picture] }],
    };
    expect((await readAnswer(gateway, asked, open)).chunks.length).toBeGreaterThan(1);
  });
});

describe("token usage of a stream", () => {
  const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
  const asksFor = ({ json: sent }: { json: unknown }) => "stream_options" in (sent as object);
  const counting: Answer = (response, received) => {
    const text = event(chunk({ delta: { content: "Hello" } }));
    const own = asksFor(received) ? [event({ choices: [], usage })] : [];
    return events(text, FINISH, ...own, DONE)(response, received);
  };

  test("the client requests token usage after the first answer without it", async () => {
    const { url, received } = await startFaultServer(counting);
    const gateway = connect(url);
    const readings = [];
    for (const _ of [1, 2, 3]) readings.push(await readAnswer(gateway, simple, open));
    expect(received.map(asksFor)).toEqual([false, true, true]);
    expect(readings.map(({ chunks }) => chunks.some((one) => one.usage?.total_tokens === 2))).toEqual([
      false,
      true,
      true,
    ]);
  });

  test("the client does not request token usage again if the gateway rejects the option or ignores it", async () => {
    const refusing: Answer = (response, received) =>
      asksFor(received) ? json(400, { error: { message: "What?" } })(response, received) : good(response, received);
    for (const answer of [refusing, good]) {
      const { url, received } = await startFaultServer(answer);
      const gateway = connect(url);
      for (const _ of [1, 2, 3, 4]) expect(await readAnswer(gateway, simple, open)).toMatchObject({ text: "Hello" });
      expect(received.map(asksFor).filter(Boolean)).toHaveLength(1);
    }
  });

  test("the client does not request token usage if the first answer has it", async () => {
    const { url, received } = await startFaultServer(
      events(event(chunk({ delta: { content: "Hello" } })), event({ choices: [], usage }), FINISH, DONE),
    );
    const gateway = connect(url);
    for (const _ of [1, 2]) await readAnswer(gateway, simple, open);
    expect(received.map(asksFor)).toEqual([false, false]);
  });
});
