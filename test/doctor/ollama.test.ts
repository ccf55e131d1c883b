import type { ServerResponse } from "node:http";
import { describe, expect, test } from "vitest";
import { checkOllama } from "../../src/doctor/ollama.ts";
import { serveAnswers } from "../support/file-server.ts";

const { signal } = new AbortController();

async function check(running: unknown, version: unknown = { version: "0.32.9" }) {
  const say = (answer: unknown) => (response: ServerResponse) => response.end(JSON.stringify(answer));
  const { origin } = await serveAnswers({ "/api/version": say(version), "/api/ps": say(running) });
  return checkOllama({ baseUrl: origin, model: "qwen3", historyMaxTokens: 16_000 }, signal);
}

const running = (context_length?: number) => ({
  models: [
    { name: "other", context_length: 1 },
    { name: "qwen3:latest", context_length },
  ],
});

describe("checkOllama", () => {
  test("checkOllama warns about a context window smaller than Palaver's requests, and names the setting", async () => {
    const [found, ...more] = await check(running(4_096));
    expect(more).toEqual([]);
    expect(found).toMatchObject({ ok: false, fix: expect.stringContaining("OLLAMA_CONTEXT_LENGTH=32768") });
    expect(found?.what).toContain("qwen3 sees only 4096 tokens");
    expect(found?.what).toContain("16,000 of conversation (HISTORY_MAX_TOKENS) and 4,000 more");
  });

  test("checkOllama accepts a window that is large enough", async () => {
    expect(await check(running(32_768))).toEqual([{ ok: true, what: expect.stringContaining("32768") }]);
  });

  test("checkOllama names the setting if Ollama does not report the window", async () => {
    const unknown = [{ ok: true, what: expect.any(String), fix: expect.stringContaining("OLLAMA_CONTEXT_LENGTH") }];
    expect(await check(running())).toEqual(unknown);
    expect(await check({ models: [] })).toEqual(unknown);
    expect(await check("nothing")).toEqual(unknown);
  });

  test("checkOllama reports nothing about a gateway other than Ollama, or about an unreachable gateway", async () => {
    expect(await check(running(1), { error: "no such page" })).toEqual([]);
    const { origin } = await serveAnswers({ "/api/version": (response) => response.end("<p>Hello</p>") });
    for (const baseUrl of [origin, "http://127.0.0.1:1"]) {
      expect(await checkOllama({ baseUrl, model: "m", historyMaxTokens: 1 }, signal)).toEqual([]);
    }
  });
});
