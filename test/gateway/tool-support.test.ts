import { describe, expect, test } from "vitest";
import type { ChatRequest, ToolDefinition } from "../../src/gateway/chunks.ts";
import { GatewayError, type GatewayErrorOptions } from "../../src/gateway/errors.ts";
import { withOptionalTools } from "../../src/gateway/tool-support.ts";
import { fakeGateway, type Step } from "../support/fake-gateway.ts";
import { ignoring, readAnswer } from "../support/gateway-client.ts";
import { silent } from "../support/log.ts";

const { signal } = new AbortController();
const tools: ToolDefinition[] = [
  { type: "function", function: { name: "clock", description: "The time.", parameters: { type: "object" } } },
];
const request: ChatRequest = { model: "plain", messages: [{ role: "user", content: "Hello" }], tools };

function start(...scripts: Step[][]) {
  const { gateway, requests } = fakeGateway(...scripts);
  const adapted = withOptionalTools(gateway, silent);
  const ask = async (asked = request) => {
    const { text, error } = await readAnswer(adapted, asked, signal);
    if (error !== undefined) throw error;
    return text;
  };
  return { ask, requests, offered: () => requests.map((sent) => [sent.model, sent.tools !== undefined]) };
}

const refusal = (options: GatewayErrorOptions, message = "no") =>
  new GatewayError("rejected", message, { status: 400, ...options });
const noTools = refusal({ type: "invalid_request_error", code: "unsupported_feature", param: "tools" });

describe("tools that a model does not take", () => {
  test("are left away at once and from then on, for that model alone", async () => {
    const { ask, offered } = start([noTools], ["Hello."]);
    expect(await ask()).toBe("Hello.");
    expect(await ask()).toBe("Hello.");
    expect(await ask({ ...request, model: "clever" })).toBe("Hello.");
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
    expect(await start([error], ["Hello."]).ask()).toBe("Hello.");
  });

  test.each([
    refusal({ code: "invalid_value", param: "tools[0].function.name" }),
    refusal({ code: "unsupported_feature", param: "messages[0].content" }),
    new GatewayError("overloaded", "no", { code: "unsupported_feature", param: "tools" }),
    new Error("does not support tools"),
  ])("are told from every other failure", async (error) => {
    const { ask, offered } = start([error]);
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
    const adapted = withOptionalTools({ ...gateway, streamChat: refusing }, silent);
    for (const _ of [1, 2]) await expect(adapted.streamChat(request, signal, ignoring)).rejects.toBe(noTools);
    expect(offered).toEqual([true, false, true, false]);
  });

  test("take the choice among them along", async () => {
    const { ask, requests } = start([noTools], ["Hello."]);
    await ask({ ...request, tool_choice: "auto" });
    expect(requests[1]).toEqual({ model: "plain", messages: request.messages });
  });
});
