import { describe, expect, test } from "vitest";
import type { GatewayConfig } from "../../src/config/config.ts";
import { checkGateway } from "../../src/doctor/gateway.ts";
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
  refusal,
  startFaultServer,
  words,
} from "../support/fault-server.ts";

const { signal } = new AbortController();
const CHATTING = { mayChat: true, historyMaxTokens: 16_000 };

function toConfig(baseUrl: string, more: Partial<GatewayConfig> = {}): GatewayConfig {
  const models = { chatModel: "sandbox-chat", imageModel: "sandbox-image" };
  const config: GatewayConfig = {
    baseUrl,
    apiKey: "sk-sandbox-all",
    ...models,
    imageApi: undefined,
    imageKeyHeader: undefined,
    headers: undefined,
    systemPrompt: "",
    extraBody: { all: {}, models: new Map() },
    fallback: { model: undefined, gateway: undefined },
  };
  return Object.assign(config, more);
}

describe("checkGateway", () => {
  test("checkGateway says that the embedded sandbox needs no check", async () => {
    const config = toConfig("", { baseUrl: undefined, apiKey: undefined });
    expect(await checkGateway(config, CHATTING, signal)).toEqual([
      { ok: true, what: expect.stringContaining("embedded sandbox") },
    ]);
  });

  test("checkGateway checks the address, the key, both models and an answer", async () => {
    const { url } = await start();
    const found = await checkGateway(toConfig(url), CHATTING, signal);
    expect(found.map(({ ok }) => ok)).toEqual([true, true, true, true, true]);
    expect(found[3]?.what).toMatch(/^sandbox-chat answers\. The gateway reports token usage/);
    expect(found[4]?.what).toMatch(/^IMAGE_MODEL sandbox-image creates images through POST \S+:generateContent\./);
  });

  test("checkGateway aborts a long answer, and asks no question with --no-chat", async () => {
    const list = (response: { end(text: string): void }) => response.end('{"data":[{"id":"sandbox-chat"}]}');
    const left = Promise.withResolvers<void>();
    const server = await startFaultServer(list, (response) => {
      const choices = [{ index: 0, delta: { role: "assistant", content: "Yes ".repeat(600) } }];
      const chunk = { id: "1", object: "chat.completion.chunk", created: 1, model: "sandbox-chat", choices };
      response.writeHead(200, { "content-type": "text/event-stream" }).write(`data: ${JSON.stringify(chunk)}\n\n`);
      response.on("close", left.resolve);
    });
    const config = toConfig(server.url, { imageModel: undefined });
    const found = await checkGateway(config, CHATTING, signal);
    expect(found.at(-1)).toMatchObject({ ok: true, what: expect.stringMatching(/^sandbox-chat answers/) });
    await left.promise;
    const quiet = await startFaultServer(list);
    expect(
      (
        await checkGateway({ ...config, baseUrl: quiet.url } as GatewayConfig, { ...CHATTING, mayChat: false }, signal)
      )[2],
    ).toEqual({
      ok: true,
      what: "The model was not asked a question (--no-chat).",
    });
    expect(quiet.received.map(({ method }) => method)).not.toContain("POST");
  });

  test("checkGateway lists the existing models if a chosen one is not among them", async () => {
    const { url } = await start();
    const config = toConfig(url, { chatModel: "sandbox-chart", imageModel: "painter" });
    const [, chat, image, ...others] = await checkGateway(config, CHATTING, signal);
    expect(chat).toEqual({
      ok: false,
      what: expect.stringMatching(/^CHAT_MODEL sandbox-chart is not one.*Did you mean sandbox-chat\?/),
      fix: expect.stringContaining("sandbox-text"),
    });
    expect(image).toMatchObject({ ok: false, what: expect.stringMatching(/^IMAGE_MODEL painter/) });
    // An answer from a wrong model proves nothing.
    expect(others.filter(({ what }) => what.includes("sandbox-chart"))).toEqual([]);
  });

  test("checkGateway checks the fallback", async () => {
    const [first, second] = [await start(), await start()];
    const gateway = { baseUrl: second.url, apiKey: "sk-sandbox-all" };
    const fallback = { model: "sandbox-text", gateway };
    const found = await checkGateway(toConfig(first.url, { fallback }), CHATTING, signal);
    expect(found.filter(({ ok }) => !ok)).toEqual([]);
    expect(found.map(({ what }) => what)).toEqual([
      expect.stringContaining("answers and accepts the key"),
      expect.stringContaining("CHAT_MODEL sandbox-chat is one"),
      expect.stringContaining("CHAT_FALLBACK_MODEL sandbox-text is one"),
      expect.stringContaining("IMAGE_MODEL"),
      expect.stringMatching(/^sandbox-chat answers/),
      expect.stringMatching(/^sandbox-text answers/),
      expect.stringContaining("creates images through"),
      expect.stringMatching(/^Second gateway: .* answers and accepts the key/),
      expect.stringContaining("CHAT_FALLBACK_MODEL sandbox-text is one"),
      expect.stringMatching(/^Second gateway: sandbox-text answers/),
    ]);
    const wrong = { ...fallback, gateway: { ...gateway, apiKey: "canary-key" } };
    const bad = await checkGateway(toConfig(first.url, { fallback: wrong }), { ...CHATTING, mayChat: false }, signal);
    expect(bad.at(-1)).toMatchObject({ ok: false, fix: expect.stringContaining("GATEWAY_FALLBACK_API_KEY") });
  });

  test("checkGateway stops at a refused key, and does not show the key", async () => {
    const { url } = await start();
    const found = await checkGateway(toConfig(url, { apiKey: "canary-key" }), CHATTING, signal);
    expect(found).toEqual([
      { ok: false, what: expect.stringContaining("refused the key"), fix: expect.stringContaining("GATEWAY_API_KEY") },
    ]);
    expect(JSON.stringify(found)).not.toContain("canary");
  });

  test("checkGateway stops if the gateway is unreachable", async () => {
    const found = await checkGateway(toConfig("http://127.0.0.1:1"), CHATTING, signal);
    expect(found).toEqual([
      {
        ok: false,
        what: expect.stringContaining("cannot be reached"),
        fix: expect.stringContaining("GATEWAY_BASE_URL"),
      },
    ]);
  });

  test("checkGateway reports that a web page is not a gateway", async () => {
    const server = await startFaultServer((response) => response.end("<html>Welcome</html>"));
    const [found] = await checkGateway(toConfig(server.url), { ...CHATTING, mayChat: false }, signal);
    expect(found).toMatchObject({ ok: false, fix: expect.stringContaining("up to but not including /v1") });
  });

  /** A gateway that has only these paths. */
  async function serve(paths: Record<string, Answer>) {
    const unknown = json(404, {
      error: { message: "Not Found", type: "invalid_request_error", code: null, param: null },
    });
    return startFaultServer((response, received) => (paths[received.path] ?? unknown)(response, received));
  }
  const check = (url: string, more: Partial<GatewayConfig> = {}) =>
    checkGateway(toConfig(url, { chatModel: "m", imageModel: undefined, ...more }), CHATTING, signal);

  test("checkGateway accepts a gateway that lists no models and answers questions", async () => {
    const { url } = await serve({ "/v1/chat/completions": good });
    expect(await check(url)).toEqual([
      { ok: true, what: expect.stringMatching(/does not list its models.*does answer questions/) },
      { ok: true, what: expect.stringMatching(/^m answers/) },
    ]);
  });

  test("checkGateway reports whether the gateway returns token usage", async () => {
    const usage = { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 };
    const counted = events(words("Yes"), FINISH, event({ ...chunk(), choices: [], usage }), DONE);
    const { url, received } = await serve({ "/v1/chat/completions": counted });
    expect((await check(url))[1]?.what).toContain("reports token usage");
    expect(received.findLast(({ method }) => method === "POST")?.json).toMatchObject({
      stream_options: { include_usage: true },
    });
    const silent = await serve({ "/v1/chat/completions": good });
    expect((await check(silent.url))[1]?.what).toContain("reports no token usage");
  });

  test("checkGateway warns about a context window of Ollama that is too small", async () => {
    const { url } = await serve({
      "/v1/chat/completions": good,
      "/api/version": json(200, { version: "0.32.9" }),
      "/api/ps": json(200, { models: [{ name: "m:latest", context_length: 4_096 }] }),
    });
    expect((await check(url)).at(-1)).toMatchObject({ ok: false, what: expect.stringContaining("only 4096 tokens") });
  });

  const noPrompt = json(400, { error: { message: "Missing required parameter: 'prompt'.", param: "prompt" } });
  const noMessages = json(400, { error: { message: "[] is too short - 'messages'", param: "messages" } });
  test.each([
    [
      "generateContent",
      { "/v1beta/models/painter:generateContent": noPrompt },
      /through POST \/v1beta\/models\/…:generateContent\. The check used/,
    ],
    [
      "images",
      { "/v1/images/generations": noPrompt },
      /through POST \/v1\/images\/generations\. It does not accept POST \S+ \(404\)\./,
    ],
    [
      "chat",
      { "/v1/chat/completions": noMessages },
      /through POST \/v1\/chat\/completions with modalities\. It does not accept/,
    ],
  ])("checkGateway names the request that creates images, and creates none: %s", async (_, paths, words) => {
    const { url, received } = await serve(paths);
    const found = await check(url, { imageModel: "painter" });
    expect(found.at(-1)).toEqual({ ok: true, what: expect.stringMatching(words) });
    expect(found.at(-1)?.what).toContain("no image was created");
    const probes = received.filter(({ path }) => path !== "/v1/models").map(({ json: body }) => JSON.stringify(body));
    expect(probes.filter((body) => /"prompt"|"text":/.test(body))).toEqual([]);
  });

  test("checkGateway reports an IMAGE_API that the gateway does not support", async () => {
    const { url } = await serve({ "/v1/images/generations": noPrompt, "/v1/chat/completions": good });
    const found = await check(url, { imageModel: "painter", imageApi: "generate-content" });
    expect(found.at(-1)).toEqual({
      ok: false,
      what: expect.stringMatching(/^IMAGE_MODEL painter cannot create images.*generateContent \(404\)/),
      fix: "Set IMAGE_API=auto.",
    });
  });

  test("checkGateway does not guess the image request if the gateway fails on an empty request", async () => {
    const path = "/v1beta/models/painter:generateContent";
    const { url } = await serve({ [path]: refusal(503, "busy"), "/v1/chat/completions": good });
    const found = await check(url, { imageModel: "painter" });
    expect(found.at(-1)).toEqual({ ok: true, what: expect.stringContaining("the first image will show") });
    const refused = await serve({ [path]: refusal(401, "no"), "/v1/chat/completions": good });
    const own = { imageModel: "painter", imageApi: "generate-content" as const };
    expect((await check(refused.url, own)).at(-1)).toEqual({
      ok: false,
      what: expect.stringMatching(/^IMAGE_MODEL painter cannot create images.*set GATEWAY_IMAGE_KEY_HEADER/),
      fix: expect.stringContaining("GATEWAY_API_KEY"),
    });
  });
});
