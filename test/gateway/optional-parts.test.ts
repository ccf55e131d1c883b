import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { ToolDefinition } from "../../src/gateway/chunks.ts";
import type { Gateway, StreamOptions } from "../../src/gateway/client.ts";
import { GatewayError, type GatewayErrorOptions } from "../../src/gateway/errors.ts";
import { withOptionalPart, withOptionalParts } from "../../src/gateway/optional-parts.ts";
import type { ChatRequest } from "../../src/gateway/request.ts";
import { createLogger } from "../../src/log/log.ts";
import { start } from "../sandbox/sandbox.ts";
import { fakeGateway, type Step } from "../support/fake-gateway.ts";
import { connect, ignoring, open, readAnswer } from "../support/gateway-client.ts";
import { silent } from "../support/log.ts";

const log = createLogger({ level: "silent", secrets: [] });
const part = {
  isIn: ({ stop }: ChatRequest) => stop !== undefined,
  without: ({ stop: _stop, ...plain }: ChatRequest) => plain,
  param: /^stop$/,
  code: /stop_not_supported/,
  message: /no stop here/,
  notice: "without",
};
const request: ChatRequest = { model: "m", messages: [{ role: "user", content: "hi" }], stop: ["x"] };

const refusal = (options: GatewayErrorOptions, message = "no") =>
  new GatewayError("rejected", message, { status: 400, ...options });

/** A gateway that refuses what `refuse` says, and tells what it was asked. */
function setUp(refuse: (request: ChatRequest) => GatewayError | undefined) {
  const asked: ChatRequest[] = [];
  const gateway = {
    async streamChat(request: ChatRequest, _signal: AbortSignal, { onChunk }: StreamOptions) {
      asked.push(request);
      const refusal = refuse(request);
      if (refusal !== undefined) throw refusal;
      onChunk({ id: "1", object: "chat.completion.chunk", created: 1, model: "m", choices: [] });
    },
  } as unknown as Gateway;
  const wrapped = withOptionalPart(gateway, part, log);
  const ask = () => wrapped.streamChat(request, open, ignoring);
  return { asked, ask };
}

test("a request goes as it is to a model that takes the part", async () => {
  const { asked, ask } = setUp(() => undefined);
  await ask();
  expect(asked).toEqual([request]);
});

test("a model that refuses the part is asked without it, then without it at once, and with it again after a while", async () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  onTestFinished(() => void vi.useRealTimers());
  const { asked, ask } = setUp(({ stop }) =>
    stop === undefined
      ? undefined
      : new GatewayError("rejected", "no", { status: 400, param: "stop", code: "unsupported_value" }),
  );
  await ask();
  await ask();
  expect(asked.map(({ stop }) => stop)).toEqual([["x"], undefined, undefined]);
  vi.advanceTimersByTime(11 * 60_000);
  await ask();
  expect(asked.slice(3).map(({ stop }) => stop)).toEqual([["x"], undefined]);
});

test("a request that is refused without the part too was not refused because of it", async () => {
  const { asked, ask } = setUp(() => new GatewayError("rejected", "no stop here", { status: 400 }));
  await expect(ask()).rejects.toThrow();
  await expect(ask()).rejects.toThrow();
  expect(asked.map(({ stop }) => stop)).toEqual([["x"], undefined, ["x"], undefined]);
});

test("a model that wants max_completion_tokens is given it in the place of max_tokens", async () => {
  // As OpenAI's reasoning models answer.
  const words =
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
  const refused = refusal({ type: "invalid_request_error", param: "max_tokens", code: "unsupported_parameter" }, words);
  const { gateway, requests } = fakeGateway([refused], ["Yes."]);
  const messages = [{ role: "user" as const, content: "hi" }];
  await withOptionalParts(gateway, silent).streamChat({ model: "o", messages, max_tokens: 100 }, open, ignoring);
  expect(requests).toEqual([
    { model: "o", messages, max_tokens: 100 },
    { model: "o", messages, max_completion_tokens: 100 },
  ]);
});

test("another refusal is passed on", async () => {
  const { asked, ask } = setUp(() => new GatewayError("rejected", "no", { status: 400, param: "messages" }));
  await expect(ask()).rejects.toThrow("no");
  expect(asked).toHaveLength(1);
});

const tools: ToolDefinition[] = [
  { type: "function", function: { name: "clock", description: "The time.", parameters: { type: "object" } } },
];
const withTools: ChatRequest = { model: "plain", messages: [{ role: "user", content: "Hello" }], tools };

function startTools(...scripts: Step[][]) {
  const { gateway, requests } = fakeGateway(...scripts);
  const adapted = withOptionalParts(gateway, silent);
  const ask = async (asked = withTools) => {
    const { text, error } = await readAnswer(adapted, asked, open);
    if (error !== undefined) throw error;
    return text;
  };
  return { ask, requests, offered: () => requests.map((sent) => [sent.model, sent.tools !== undefined]) };
}

const noTools = refusal({ type: "invalid_request_error", code: "unsupported_feature", param: "tools" });

describe("tools that a model does not take", () => {
  test("are left away at once and from then on, for that model alone", async () => {
    const { ask, offered } = startTools([noTools], ["Hello."]);
    expect(await ask()).toBe("Hello.");
    expect(await ask()).toBe("Hello.");
    expect(await ask({ ...withTools, model: "clever" })).toBe("Hello.");
    expect(offered()).toEqual([
      ["plain", true],
      ["plain", false],
      ["plain", false],
      ["clever", true],
    ]);
  });

  test.each([
    refusal({ code: "tools_not_supported" }),
    refusal({}, "The gateway refused: gemma does not support tools"),
    refusal({ status: 404 }, "No endpoints found that support tool use."),
    refusal({}, "This model doesn't support tool use."),
    refusal({}, "`tool calling` is not supported with this model"),
    refusal({}, "Function calling is not enabled for models/gemma-3-27b-it"),
    refusal({}, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
    refusal({}, "Unrecognized request argument supplied: tools"),
    new GatewayError("overloaded", "tools param requires --jinja flag", { status: 500 }),
  ])("are recognised in the words of other gateways: $message", async (error) => {
    expect(await startTools([error], ["Hello."]).ask()).toBe("Hello.");
  });

  test.each([
    refusal({ code: "invalid_value", param: "tools[0].function.name" }),
    refusal({ code: "unsupported_feature", param: "messages[0].content" }),
    new GatewayError("overloaded", "no", { code: "unsupported_feature", param: "tools" }),
    new Error("does not support tools"),
  ])("are told from every other failure", async (error) => {
    const { ask, offered } = startTools([error]);
    await expect(ask()).rejects.toBe(error);
    expect(offered()).toHaveLength(1);
  });

  test("are offered again where leaving them away did not help", async () => {
    const offered: boolean[] = [];
    const { gateway } = fakeGateway([]);
    const refusing: typeof gateway.streamChat = async (asked) => {
      offered.push(asked.tools !== undefined);
      throw noTools;
    };
    const adapted = withOptionalParts({ ...gateway, streamChat: refusing }, silent);
    for (const _ of [1, 2]) await expect(adapted.streamChat(withTools, open, ignoring)).rejects.toBe(noTools);
    expect(offered).toEqual([true, false, true, false]);
  });

  test("take the choice among them along", async () => {
    const { ask, requests } = startTools([noTools], ["Hello."]);
    await ask({ ...withTools, tool_choice: "auto" });
    expect(requests[1]).toEqual({ model: "plain", messages: withTools.messages });
  });
});

const picture = { type: "image_url" as const, image_url: { url: "data:image/png;base64,AAAA" } };
const withPicture: ChatRequest = {
  model: "plain",
  messages: [
    { role: "user", content: [{ type: "text", text: "What is this?" }, picture] },
    { role: "user", name: "ben", content: "Yes, what?" },
  ],
};

function startPictures(...scripts: Step[][]) {
  const { gateway, requests } = fakeGateway(...scripts);
  const adapted = withOptionalParts(gateway, silent);
  const ask = async (asked = withPicture) => {
    const { text, error } = await readAnswer(adapted, asked, open);
    if (error !== undefined) throw error;
    return text;
  };
  return { ask, sent: () => requests.map(({ messages }) => messages[0]?.content) };
}

describe("pictures that a model does not see", () => {
  const words = "What is this?\n\n(You cannot see this picture. Say so when it matters.)";

  test.each([
    [refusal({ code: "unsupported_feature", param: "messages[0].content" })],
    [refusal({ code: "image_not_supported" })],
    [refusal({}, "No endpoints found that support image input")],
    [refusal({}, "This model does not support image inputs.")],
    [refusal({}, "Invalid content type. image_url is only supported by certain models.")],
    [refusal({}, "gemma-2-9b is not a multimodal model")],
    [refusal({}, "At most 0 image(s) may be provided in one withPicture.")],
    [refusal({}, "messages[1].content must be a string")],
    [refusal({ status: 422 }, "messages[1]: unknown variant `image_url`, expected `text`")],
    [new GatewayError("overloaded", "image input is not supported", { status: 500 })],
  ])("are replaced by words, from then on at once: %s", async (error) => {
    const { ask, sent } = startPictures([error], ["A guess."], ["Another."]);
    expect(await ask()).toBe("A guess.");
    expect(await ask()).toBe("Another.");
    expect(sent()).toEqual([withPicture.messages[0]?.content, words, words]);
  });

  test.each([
    [refusal({ code: "context_length_exceeded", param: "messages" })],
    [refusal({ code: "invalid_image", param: "messages[0].content[1].image_url.url" })],
    [new GatewayError("unreachable", "no")],
  ])("are not what another refusal is about: %s", async (error) => {
    const { ask, sent } = startPictures([error], ["never"]);
    await expect(ask()).rejects.toBe(error);
    expect(sent()).toHaveLength(1);
  });

  test("do not keep a text model of the sandbox from answering", async () => {
    const sandbox = await start();
    const gateway = withOptionalParts(connect(sandbox.url, { apiKey: "sk-sandbox-all" }), silent);
    const asked = { ...withPicture, model: "sandbox-text" };
    expect((await readAnswer(gateway, asked, open)).chunks.length).toBeGreaterThan(1);
  });
});
