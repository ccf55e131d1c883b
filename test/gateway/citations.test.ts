import { describe, expect, onTestFinished, test } from "vitest";
import type { DialectName } from "../../lab/gateway/dialects/index.ts";
import { startDialect } from "../../lab/gateway/server.ts";
import type { ChatCompletionChunk } from "../../src/gateway/chunks.ts";
import { createSafeText } from "../../src/gateway/safe-text.ts";
import { createStreamDecoder } from "../../src/gateway/stream-decoder.ts";
import { joinSources } from "../../src/text/sources.ts";

const LIMITS = { maxEventBytes: 100_000, maxAnswerChars: 100_000, maxBodyBytes: 100_000 };

function read(response: string) {
  const chunks: ChatCompletionChunk[] = [];
  const decoder = createStreamDecoder(LIMITS, createSafeText([]), (chunk) => chunks.push(chunk));
  decoder.feed(response);
  decoder.end();
  const sources = chunks.reduce((sum, chunk) => joinSources(sum, chunk.sources ?? []), joinSources());
  const text = chunks.flatMap(({ choices }) => choices.map(({ delta }) => delta.content ?? "")).join("");
  return { text, sources };
}

const readDelta = (choice: object, more: object = {}) =>
  read(
    `data: ${JSON.stringify({ id: "1", choices: [{ index: 0, delta: { content: "x" }, ...choice }], ...more })}\n\n`,
  );

describe("the citations of an answer", () => {
  const pages = [
    { url: "https://example.com/kettles", title: "Kettles - a history" },
    { url: "https://example.org/tea?utm_source=lab", title: "Tea" },
  ];

  test.each<[DialectName, boolean, number[][]]>([
    ["openai", true, [[], []]],
    ["openai", false, [[], []]],
    ["openrouter", true, [[], []]],
    ["openrouter", false, [[], []]],
    ["perplexity", true, [[1, 3], [2]]],
    ["perplexity", false, [[1, 3], [2]]],
  ])("the client reads citations of %s once each, streamed: %s", async (dialect, stream, marks) => {
    const { url, apiKey, chatModel: model, close } = await startDialect({ dialect });
    onTestFinished(close);
    const headers = { authorization: `Bearer ${apiKey}`, "content-type": "application/json" };
    const messages = [{ role: "user", content: "say: Hello." }];
    const body = JSON.stringify({ model, stream, messages, web_search_options: {} });
    const response = await fetch(`${url}/chat/completions`, { method: "POST", headers, body });
    const { text, sources } = read(await response.text());
    expect(text).toMatch(/^Hello\.( \(\[|\[1\])/);
    expect(sources).toEqual(pages.map((page, index) => ({ ...page, marks: marks[index] })));
  });

  test("the client also reads citations without the inner object, and next to the delta", () => {
    const flat = { type: "url_citation", url: "https://a.example/", title: "A" };
    const source = { url: "https://a.example/", title: "A", marks: [] };
    expect(readDelta({ annotations: [flat] }).sources).toEqual([source]);
    expect(readDelta({ delta: { content: "x", annotations: [flat] } }).sources).toEqual([source]);
  });

  test("the client drops citations that lead nowhere, and values that are not citations", () => {
    const citations = ["https://a.example/", "ftp://b.example/", 3, null, { url: "https://c.example/", title: "C" }];
    expect(readDelta({}, { citations, search_results: "none", sources: [{ url: "x" }] }).sources).toEqual([
      { url: "https://a.example/", title: "", marks: [1] },
      { url: "https://c.example/", title: "C", marks: [5] },
    ]);
    expect(
      readDelta({ delta: { content: "x", annotations: [{ type: "file_citation", file_id: "1" }, null] } }),
    ).toEqual({
      text: "x",
      sources: [],
    });
  });
});
