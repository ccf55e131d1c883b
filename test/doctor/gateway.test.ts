import { describe, expect, test } from "vitest";
import type { GatewayConfig } from "../../src/config/config.ts";
import { checkGateway } from "../../src/doctor/gateway.ts";
import { start } from "../sandbox/sandbox.ts";
import { startFaultServer } from "../support/fault-server.ts";

const { signal } = new AbortController();

function toConfig(baseUrl: string, more: Partial<GatewayConfig> = {}): GatewayConfig {
  const models = {
    chatModel: "sandbox-chat",
    imageModel: "sandbox-image",
    imageKeyHeader: undefined,
    headers: undefined,
  };
  const config: GatewayConfig = {
    baseUrl,
    apiKey: "sk-sandbox-all",
    ...models,
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
    expect(found.map(({ ok }) => ok)).toEqual([true, true, true, true]);
    expect(found[3]?.what).toMatch(/^sandbox-chat answers.*--no-chat/);
  });

  test("checkGateway leaves an answer at its beginning, and asks for none when it may not chat", async () => {
    const list = (response: { end(text: string): void }) => response.end('{"data":[{"id":"sandbox-chat"}]}');
    const left = Promise.withResolvers<void>();
    const server = await startFaultServer(list, (response) => {
      const choices = [{ index: 0, delta: { role: "assistant", content: "Yes" } }];
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
});
