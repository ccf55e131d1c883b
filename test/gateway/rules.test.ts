/** Tests the client with the sandbox, over a real connection. */
import sharp from "sharp";
import { describe, expect, test } from "vitest";
import { linked } from "../../lab/support/picture-turn.ts";
import { type AssistantMessage, applyDelta, type ChatMessage, type ToolDefinition } from "../../src/gateway/chunks.ts";
import type { Gateway, GatewayOptions } from "../../src/gateway/client.ts";
import type { ChatRequest } from "../../src/gateway/request.ts";
import type { SandboxOptions } from "../../src/sandbox/server.ts";
import { picture, serveFiles, start } from "../sandbox/sandbox.ts";
import { connect, failureOf, ignoring, open, readAnswer } from "../support/gateway-client.ts";

const TIME: ToolDefinition = {
  type: "function",
  function: {
    name: "current_time",
    description: "The time in a zone.",
    parameters: { type: "object", properties: { zone: { type: "string" } }, required: ["zone"] },
  },
};

async function meet(client: Partial<GatewayOptions> = {}, server: Partial<SandboxOptions> = {}): Promise<Gateway> {
  const { url } = await start(server);
  return connect(url, { apiKey: "sk-sandbox-all", ...client });
}

function say(content: string, fields: Partial<ChatRequest> = {}): ChatRequest {
  return { model: "sandbox-chat", messages: [{ role: "user", content }], ...fields };
}

async function answerOf(gateway: Gateway, request: ChatRequest): Promise<[string, unknown]> {
  const { chunks, text, error } = await readAnswer(gateway, request, open);
  if (error !== undefined) throw error;
  return [text, chunks.flatMap(({ choices }) => choices).at(-1)?.finish_reason];
}

describe("the client and the sandbox", () => {
  test("client and sandbox report the token usage if it was requested, for one model or all", async () => {
    const include = { stream_options: { include_usage: true } };
    const nothing = { all: {}, models: new Map() };
    const usageOf = async (extraBody: GatewayOptions["extraBody"]) => {
      const { chunks } = await readAnswer(await meet(extraBody && { extraBody }), say("say: thanks"), open);
      return chunks.at(-1)?.usage ?? undefined;
    };
    const counted = { prompt_tokens: expect.any(Number), completion_tokens: 1, total_tokens: expect.any(Number) };
    expect(await usageOf(undefined)).toBeUndefined();
    expect(await usageOf({ ...nothing, all: include })).toEqual(counted);
    expect(await usageOf({ ...nothing, models: new Map([["sandbox-chat", include]]) })).toEqual(counted);
    expect(await usageOf({ ...nothing, models: new Map([["sandbox-text", include]]) })).toBeUndefined();
  });

  test("client and sandbox agree on all thirteen fields and four roles", async () => {
    const call = { id: "a", type: "function" as const, function: { name: "current_time", arguments: "{}" } };
    const messages: ChatMessage[] = [
      { role: "system", content: "Be brief." },
      { role: "user", content: [{ type: "text", text: "What time is it?" }], name: "Ada" },
      { role: "assistant", content: "", tool_calls: [call] },
      { role: "tool", content: "noon", tool_call_id: "a" },
      { role: "assistant", content: "It is noon." },
      { role: "user", content: "say: thanks", name: "Ada" },
    ];
    const request: ChatRequest = {
      model: "sandbox-chat",
      messages,
      temperature: 2,
      top_p: 0,
      max_tokens: 50,
      stop: ["END"],
      presence_penalty: -2,
      frequency_penalty: 2,
      response_format: { type: "text" },
      tools: [TIME],
      tool_choice: "auto",
      user: "u_1",
    };
    const gateway = await meet();
    expect(await answerOf(gateway, request)).toEqual(["thanks", "stop"]);
    expect(await readAnswer(gateway, request, open)).toMatchObject({ text: "thanks", error: undefined });
  });

  test("client and sandbox exchange several tool calls and their results", async () => {
    const gateway = await meet();
    const look = {
      type: "function" as const,
      function: { name: "look_around", description: "Looks around.", parameters: {} },
    };
    const asked = say("Use current_time in Tokyo and look_around", { tools: [TIME, look], tool_choice: "auto" });
    let answer: AssistantMessage = { role: "assistant", content: "" };
    const { chunks } = await readAnswer(gateway, asked, open);
    for (const { choices } of chunks) if (choices[0] !== undefined) answer = applyDelta(answer, choices[0].delta);
    const calls = answer.tool_calls ?? [];
    expect(calls.map((call) => call.function.arguments)).toEqual(['{"zone":"Asia/Tokyo"}', "{}"]);
    const results = calls.map(({ id }, index) => ({
      role: "tool" as const,
      content: `result ${index}`,
      tool_call_id: id,
    }));
    const [text] = await answerOf(gateway, { ...asked, messages: [...asked.messages, answer, ...results] });
    expect(text).toMatch(/result 0[\s\S]*result 1/);
  });

  test.each<[number, string, string, string, Partial<ChatRequest>]>([
    [401, "sk-unknown", "unauthorized", "invalid_api_key", {}],
    [400, "sk-sandbox-chat", "rejected", "context_length_exceeded", { max_tokens: 10_000_000 }],
    [403, "sk-sandbox-chat", "unauthorized", "model_not_permitted", { model: "sandbox-image" }],
    [404, "sk-sandbox-all", "rejected", "model_not_found", { model: "gone" }],
  ])("client and sandbox agree on the error object of a %i", async (status, apiKey, kind, code, fields) => {
    const failure = await failureOf((await meet({ apiKey })).streamChat(say("hi", fields), open, ignoring));
    expect(failure).toMatchObject({ status, kind, code });
    expect(failure.type).toMatch(/_error$/);
    expect(failure.message).not.toContain(apiKey);
  });

  test("the client recovers from a rate limit that passes", async () => {
    const gateway = await meet();
    expect(await answerOf(gateway, say("say: later", { model: "sandbox-chat:429-once=1" }))).toEqual(["later", "stop"]);
  });
});

describe("images between the client and the sandbox", () => {
  const draw = (gateway: Gateway, fields = {}) =>
    gateway.generateImage({ model: "sandbox-image", prompt: "a red house", ...fields }, open);

  test("the sandbox creates images from references, in the requested ratio and size", async () => {
    const origin = await serveFiles({
      "/a": await picture("red", 9, 9),
      "/b": await picture("blue", 9, 9, "jpeg"),
    });
    const gateway = await meet({}, { trustedFileOrigins: [origin] });
    const references = linked(
      { mimeType: "image/png", fileUri: `${origin}/a` },
      { mimeType: "image/jpeg", fileUri: `${origin}/b` },
    );
    const { bytes, text } = await draw(gateway, { references, aspectRatio: "16:9", imageSize: "1K" });
    expect(text).toContain("2 reference pictures");
    expect(await sharp(bytes).metadata()).toMatchObject({ width: 1360, height: 765 });
  });

  test("the client finds images in the other spelling, and reports an answer without an image", async () => {
    const gateway = await meet();
    expect((await draw(gateway, { model: "sandbox-image:snake-case" })).mimeType).toBe("image/png");
    expect((await failureOf(draw(gateway, { model: "sandbox-image:no-image" }))).kind).toMatch(
      /^(malformed|rejected)$/,
    );
  });
});
