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
  test("checkGateway says that the sandbox inside needs nothing", async () => {
    const config = toConfig("", { baseUrl: undefined, apiKey: undefined });
    expect(await checkGateway(config, { mayChat: true }, signal)).toEqual([
      { ok: true, what: expect.stringContaining("embedded sandbox") },
    ]);
  });

  test("checkGateway tries address, key, both models and an answer", async () => {
    const { url } = await start();
    const found = await checkGateway(toConfig(url), { mayChat: true }, signal);
    expect(found.map(({ ok }) => ok)).toEqual([true, true, true, true, true]);
    expect(found[3]?.what).toMatch(/^sandbox-chat answers\. The gateway reports token usage.*--no-chat/);
    expect(found[4]?.what).toMatch(/^IMAGE_MODEL sandbox-image is asked for pictures by POST \S+:generateContent\./);
  });

  test("checkGateway leaves a long answer, and asks for none when it may not chat", async () => {
    const list = (response: { end(text: string): void }) => response.end('{"data":[{"id":"sandbox-chat"}]}');
    const left = Promise.withResolvers<void>();
    const server = await startFaultServer(list, (response) => {
      const choices = [{ index: 0, delta: { role: "assistant", content: "Yes ".repeat(600) } }];
      const chunk = { id: "1", object: "chat.completion.chunk", created: 1, model: "sandbox-chat", choices };
      response.writeHead(200, { "content-type": "text/event-stream" }).write(`data: ${JSON.stringify(chunk)}\n\n`);
      response.on("close", left.resolve);
    });
    const config = toConfig(server.url, { imageModel: undefined });
    const found = await checkGateway(config, { mayChat: true }, signal);
    expect(found.at(-1)).toMatchObject({ ok: true, what: expect.stringMatching(/^sandbox-chat answers/) });
    await left.promise;
    const quiet = await startFaultServer(list);
    expect(
      (await checkGateway({ ...config, baseUrl: quiet.url } as GatewayConfig, { mayChat: false }, signal))[2],
    ).toEqual({
      ok: true,
      what: "No question was asked (--no-chat).",
    });
    expect(quiet.received).toHaveLength(1);
  });

  test("checkGateway names the models that there are when a chosen one is not among them", async () => {
    const { url } = await start();
    const config = toConfig(url, { chatModel: "sandbox-chart", imageModel: "painter" });
    const [, chat, image, answer] = await checkGateway(config, { mayChat: true }, signal);
    expect(chat).toEqual({
      ok: false,
      what: expect.stringMatching(/^CHAT_MODEL sandbox-chart is not one.*Did you mean sandbox-chat\?/),
      fix: expect.stringContaining("sandbox-text"),
    });
    expect(image).toMatchObject({ ok: false, what: expect.stringMatching(/^IMAGE_MODEL painter/) });
    expect(answer).toMatchObject({ ok: false, what: expect.stringMatching(/^sandbox-chart does not answer/) });
  });

  test("checkGateway tries what answers while the gateway is down", async () => {
    const [first, second] = [await start(), await start()];
    const gateway = { baseUrl: second.url, apiKey: "sk-sandbox-all" };
    const fallback = { model: "sandbox-text", gateway };
    const found = await checkGateway(toConfig(first.url, { fallback }), { mayChat: true }, signal);
    expect(found.filter(({ ok }) => !ok)).toEqual([]);
    expect(found.map(({ what }) => what)).toEqual([
      expect.stringContaining("answers and takes the key"),
      expect.stringContaining("CHAT_MODEL sandbox-chat is one"),
      expect.stringContaining("CHAT_FALLBACK_MODEL sandbox-text is one"),
      expect.stringContaining("IMAGE_MODEL"),
      expect.stringMatching(/^sandbox-chat answers/),
      expect.stringMatching(/^sandbox-text answers/),
      expect.stringContaining("is asked for pictures by"),
      expect.stringMatching(/^Second gateway: .* answers and takes the key/),
      expect.stringContaining("CHAT_FALLBACK_MODEL sandbox-text is one"),
      expect.stringMatching(/^Second gateway: sandbox-text answers/),
    ]);
    const wrong = { ...fallback, gateway: { ...gateway, apiKey: "canary-key" } };
    const bad = await checkGateway(toConfig(first.url, { fallback: wrong }), { mayChat: false }, signal);
    expect(bad.at(-1)).toMatchObject({ ok: false, fix: expect.stringContaining("GATEWAY_FALLBACK_API_KEY") });
  });

  test("checkGateway stops at a key that is refused, and does not show it", async () => {
    const { url } = await start();
    const found = await checkGateway(toConfig(url, { apiKey: "canary-key" }), { mayChat: true }, signal);
    expect(found).toEqual([
      { ok: false, what: expect.stringContaining("refused the key"), fix: expect.stringContaining("GATEWAY_API_KEY") },
    ]);
    expect(JSON.stringify(found)).not.toContain("canary");
  });

  test("checkGateway stops where nobody answers", async () => {
    const found = await checkGateway(toConfig("http://127.0.0.1:1"), { mayChat: true }, signal);
    expect(found).toEqual([
      {
        ok: false,
        what: expect.stringContaining("cannot be reached"),
        fix: expect.stringContaining("GATEWAY_BASE_URL"),
      },
    ]);
  });

  test("checkGateway says that a web page is no gateway", async () => {
    const server = await startFaultServer((response) => response.end("<html>Welcome</html>"));
    const [found] = await checkGateway(toConfig(server.url), { mayChat: false }, signal);
    expect(found).toMatchObject({ ok: false, fix: expect.stringContaining("up to but not including /v1") });
  });

  /** A gateway with these paths only, which answers questions if it is to. */
  async function serve(paths: Record<string, Answer>) {
    const unknown = json(404, {
      error: { message: "Not Found", type: "invalid_request_error", code: null, param: null },
    });
    return startFaultServer((response, received) => (paths[received.path] ?? unknown)(response, received));
  }
  const check = (url: string, more: Partial<GatewayConfig> = {}) =>
    checkGateway(toConfig(url, { chatModel: "m", imageModel: undefined, ...more }), { mayChat: true }, signal);

  test("checkGateway finds nothing wrong with a gateway that lists no models and answers questions", async () => {
    const { url } = await serve({ "/v1/chat/completions": good });
    expect(await check(url)).toEqual([
      { ok: true, what: expect.stringMatching(/does not list its models.*answers questions all the same/) },
      { ok: true, what: expect.stringMatching(/^m answers/) },
    ]);
  });

  test("checkGateway says whether the gateway reports token usage", async () => {
    const usage = { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 };
    const counted = events(words("Yes"), FINISH, event({ ...chunk(), choices: [], usage }), DONE);
    const { url, received } = await serve({ "/v1/chat/completions": counted });
    expect((await check(url))[1]?.what).toContain("reports token usage");
    expect(received.at(-1)?.json).toMatchObject({ stream_options: { include_usage: true } });
    const silent = await serve({ "/v1/chat/completions": good });
    expect((await check(silent.url))[1]?.what).toContain("reports no token usage");
  });

  const noPrompt = json(400, { error: { message: "Missing required parameter: 'prompt'.", param: "prompt" } });
  const noMessages = json(400, { error: { message: "[] is too short - 'messages'", param: "messages" } });
  test.each([
    [
      "generateContent",
      { "/v1beta/models/painter:generateContent": noPrompt },
      /by POST \/v1beta\/models\/…:generateContent\. Empty/,
    ],
    [
      "images",
      { "/v1/images/generations": noPrompt },
      /by POST \/v1\/images\/generations\. It does not take POST \S+ \(404\)\./,
    ],
    [
      "chat",
      { "/v1/chat/completions": noMessages },
      /by POST \/v1\/chat\/completions with modalities\. It does not take/,
    ],
  ])("checkGateway says how the gateway is asked for pictures, and draws none: %s", async (_, paths, words) => {
    const { url, received } = await serve(paths);
    const found = await check(url, { imageModel: "painter" });
    expect(found.at(-1)).toEqual({ ok: true, what: expect.stringMatching(words) });
    expect(found.at(-1)?.what).toContain("nothing was drawn");
    const probes = received.filter(({ path }) => path !== "/v1/models").map(({ json: body }) => JSON.stringify(body));
    expect(probes.filter((body) => /"prompt"|"text":/.test(body))).toEqual([]);
  });

  test("checkGateway says that an IMAGE_API is none of the gateway's", async () => {
    const { url } = await serve({ "/v1/images/generations": noPrompt, "/v1/chat/completions": good });
    const found = await check(url, { imageModel: "painter", imageApi: "generate-content" });
    expect(found.at(-1)).toEqual({
      ok: false,
      what: expect.stringMatching(/^IMAGE_MODEL painter cannot be asked for pictures.*generateContent \(404\)/),
      fix: "Set IMAGE_API=auto.",
    });
  });

  test("checkGateway does not guess how a gateway draws that fails at the empty request", async () => {
    const path = "/v1beta/models/painter:generateContent";
    const { url } = await serve({ [path]: refusal(503, "busy"), "/v1/chat/completions": good });
    const found = await check(url, { imageModel: "painter" });
    expect(found.at(-1)).toEqual({ ok: true, what: expect.stringContaining("the first picture will show") });
    const refused = await serve({ [path]: refusal(401, "no"), "/v1/chat/completions": good });
    const own = { imageModel: "painter", imageApi: "generate-content" as const };
    expect((await check(refused.url, own)).at(-1)).toEqual({
      ok: false,
      what: expect.stringMatching(/^IMAGE_MODEL painter cannot be asked for pictures.*set GATEWAY_IMAGE_KEY_HEADER/),
      fix: expect.stringContaining("GATEWAY_API_KEY"),
    });
  });
});
