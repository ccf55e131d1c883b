import { describe, expect, test } from "vitest";
import type { ChatRequest } from "../../src/gateway/chunks.ts";
import { GatewayError, type GatewayErrorOptions } from "../../src/gateway/errors.ts";
import { withOptionalPictures } from "../../src/gateway/picture-support.ts";
import { start } from "../sandbox/sandbox.ts";
import { fakeGateway, type Step } from "../support/fake-gateway.ts";
import { connect, readAnswer } from "../support/gateway-client.ts";
import { silent } from "../support/log.ts";

const { signal } = new AbortController();
const picture = { type: "image_url" as const, image_url: { url: "data:image/png;base64,AAAA" } };
const request: ChatRequest = {
  model: "plain",
  messages: [
    { role: "user", content: [{ type: "text", text: "What is this?" }, picture] },
    { role: "user", name: "ben", content: "Yes, what?" },
  ],
};

function begin(...scripts: Step[][]) {
  const { gateway, requests } = fakeGateway(...scripts);
  const adapted = withOptionalPictures(gateway, silent);
  const ask = async (asked = request) => {
    const { text, error } = await readAnswer(adapted, asked, signal);
    if (error !== undefined) throw error;
    return text;
  };
  return { ask, sent: () => requests.map(({ messages }) => messages[0]?.content) };
}

const refusal = (options: GatewayErrorOptions, message = "no") =>
  new GatewayError("rejected", message, { status: 400, ...options });

describe("pictures that a model does not see", () => {
  const words = "What is this?\n\n(You cannot see this picture. Say so when it matters.)";

  test.each([
    [refusal({ code: "unsupported_feature", param: "messages[0].content" })],
    [refusal({ code: "image_not_supported" })],
    [refusal({}, "No endpoints found that support image input")],
    [refusal({}, "This model does not support image inputs.")],
    [refusal({}, "Invalid content type. image_url is only supported by certain models.")],
    [refusal({}, "gemma-2-9b is not a multimodal model")],
    [refusal({}, "At most 0 image(s) may be provided in one request.")],
    [refusal({}, "messages[1].content must be a string")],
    [refusal({ status: 422 }, "messages[1]: unknown variant `image_url`, expected `text`")],
    [new GatewayError("overloaded", "image input is not supported", { status: 500 })],
  ])("are replaced by words, from then on at once: %s", async (error) => {
    const { ask, sent } = begin([error], ["A guess."], ["Another."]);
    expect(await ask()).toBe("A guess.");
    expect(await ask()).toBe("Another.");
    expect(sent()).toEqual([request.messages[0]?.content, words, words]);
  });

  test.each([
    [refusal({ code: "context_length_exceeded", param: "messages" })],
    [refusal({ code: "invalid_image", param: "messages[0].content[1].image_url.url" })],
    [new GatewayError("unreachable", "no")],
  ])("are not what another refusal is about: %s", async (error) => {
    const { ask, sent } = begin([error], ["never"]);
    await expect(ask()).rejects.toBe(error);
    expect(sent()).toHaveLength(1);
  });

  test("do not keep a text model of the sandbox from answering", async () => {
    const sandbox = await start();
    const gateway = withOptionalPictures(connect(sandbox.url, { apiKey: "sk-sandbox-all" }), silent);
    const asked = { ...request, model: "sandbox-text" };
    expect((await readAnswer(gateway, asked, signal)).chunks.length).toBeGreaterThan(1);
  });
});
