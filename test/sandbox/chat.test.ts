import { describe, expect, test } from "vitest";
import { ask, chunksOf, completionOf, contentOf, refusalOf, start, textOf } from "./sandbox.ts";

const TOOL = {
  type: "function",
  function: {
    name: "current_time",
    parameters: { type: "object", properties: { zone: { type: "string" } }, required: ["zone"] },
  },
};

describe("a whole chat completion of the sandbox", () => {
  test("a chat completion has id, object, created, model, choices and usage as the interface says", async () => {
    const sandbox = await start();
    const response = await ask(sandbox, "say: 日本語 **x**");
    expect([response.status, response.headers.get("content-type")]).toEqual([200, "application/json; charset=utf-8"]);
    const body = (await response.json()) as Record<string, unknown>;
    expect(body).toEqual({
      id: expect.stringMatching(/^chatcmpl-\w+$/),
      object: "chat.completion",
      created: expect.any(Number),
      model: "sandbox-chat",
      choices: [
        {
          index: 0,
          message: { role: "assistant", content: "日本語 **x**", refusal: null },
          logprobs: null,
          finish_reason: "stop",
        },
      ],
      usage: {
        prompt_tokens: expect.any(Number),
        completion_tokens: expect.any(Number),
        total_tokens: expect.any(Number),
      },
    });
    expect(Number.isInteger(body["created"])).toBe(true);
  });

  test("the usage has a correct total, and more words cost more", async () => {
    const sandbox = await start();
    const short = await completionOf(ask(sandbox, "say: one"));
    const long = await completionOf(ask(sandbox, "say: one two three four five six"));
    for (const { usage } of [short, long])
      expect(usage.total_tokens).toBe(usage.prompt_tokens + usage.completion_tokens);
    expect(long.usage.prompt_tokens).toBeGreaterThan(short.usage.prompt_tokens);
    expect(long.usage.completion_tokens).toBeGreaterThan(short.usage.completion_tokens);
  });

  test("ids are unique, and answers to the same request are equal", async () => {
    const sandbox = await start();
    const [a, b] = await Promise.all([1, 2].map(() => completionOf(ask(sandbox, "write 200 words"))));
    expect(a?.choices).toEqual(b?.choices);
    expect(a).not.toEqual(b);
  });

  test("stop ends the text before the first stop sequence", async () => {
    const sandbox = await start();
    const one = await completionOf(ask(sandbox, "count to 20", { stop: "\n7" }));
    expect(one.choices[0]).toMatchObject({ message: { content: "1\n2\n3\n4\n5\n6" }, finish_reason: "stop" });
    expect(await contentOf(ask(sandbox, "count to 20", { stop: ["9", "\n3"] }))).toBe("1\n2");
  });

  test.each([1, 2, 7, 40])(
    "the field max_tokens limits an answer to %i tokens, which ends with length",
    async (maxTokens) => {
      const sandbox = await start();
      const { choices, usage } = await completionOf(ask(sandbox, "write 300 words", { max_tokens: maxTokens }));
      expect(choices[0].finish_reason).toBe("length");
      expect(usage.completion_tokens).toBeLessThanOrEqual(maxTokens);
      expect(choices[0].message.content.length).toBeGreaterThan(0);
    },
  );

  test("the sandbox refuses max_tokens beyond the model's context", async () => {
    const sandbox = await start();
    const refusal = await refusalOf(ask(sandbox, "hi", { max_tokens: 128_000 }));
    expect(refusal).toMatchObject({ status: 400, code: "context_length_exceeded", param: "max_tokens" });
    const long = await refusalOf(ask(sandbox, "word ".repeat(140_000)));
    expect(long).toMatchObject({ status: 400, code: "context_length_exceeded", param: "messages" });
  });

  test("the sandbox obeys response_format json_object and json_schema", async () => {
    const sandbox = await start();
    const asObject = await contentOf(ask(sandbox, "hello", { response_format: { type: "json_object" } }));
    expect(JSON.parse(asObject)).toEqual({ answer: expect.stringContaining("Hello") });
    expect(await contentOf(ask(sandbox, 'say: {"a":1}', { response_format: { type: "json_object" } }))).toBe('{"a":1}');
    const schema = {
      type: "object",
      properties: { name: { type: "string" }, age: { type: "integer" } },
      required: ["name", "age"],
    };
    const format = { type: "json_schema", json_schema: { name: "person", schema } };
    expect(JSON.parse(await contentOf(ask(sandbox, "The name is Bob, age: 33.", { response_format: format })))).toEqual(
      { name: "Bob", age: 33 },
    );
  });
});

describe("a streamed chat completion of the sandbox", () => {
  test("a stream has role with empty content, increments, finish with an empty delta, [DONE]", async () => {
    const sandbox = await start();
    const response = await ask(sandbox, "say: Growing 文章 😀 here", { stream: true });
    expect(response.headers.get("content-type")).toMatch(/^text\/event-stream/);
    const text = await response.text();
    expect(text).toMatch(/^(data: [^\n]+\n\n)+$/);
    expect(text.endsWith("\n\ndata: [DONE]\n\n")).toBe(true);

    const chunks = chunksOf(text);
    expect(
      new Set(chunks.map(({ id, object, created, model }) => JSON.stringify([id, object, created, model]))).size,
    ).toBe(1);
    expect(chunks[0]).toMatchObject({ object: "chat.completion.chunk", model: "sandbox-chat" });
    expect(chunks[0]?.choices).toEqual([{ index: 0, delta: { role: "assistant", content: "" }, finish_reason: null }]);
    expect(chunks.at(-1)?.choices).toEqual([{ index: 0, delta: {}, finish_reason: "stop" }]);
    const increments = chunks.slice(1, -1);
    expect(increments.length).toBeGreaterThan(2);
    for (const { choices } of increments)
      expect(choices).toEqual([{ index: 0, delta: { content: expect.any(String) }, finish_reason: null }]);
    expect(textOf(increments)).toBe("Growing 文章 😀 here");
    expect(chunks.every((chunk) => !("usage" in chunk))).toBe(true);
  });

  test("a streamed answer equals the whole one, byte for byte", async () => {
    const sandbox = await start();
    for (const words of [
      "write 900 words with code, a table and Japanese",
      "say: \r\n\t a\u0000b \u{1F469}\u200D\u{1F680} end \n",
    ]) {
      const whole = await contentOf(ask(sandbox, words));
      const streamed = textOf(chunksOf(await (await ask(sandbox, words, { stream: true })).text()));
      expect(streamed).toBe(whole);
    }
  });

  test("include_usage adds one chunk without choices before [DONE]", async () => {
    const sandbox = await start();
    const extra = { stream: true, stream_options: { include_usage: true } };
    const chunks = chunksOf(await (await ask(sandbox, "hi", extra)).text());
    const { usage } = await completionOf(ask(sandbox, "hi"));
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage });
    expect(chunks.slice(0, -1).every((chunk) => chunk.usage === null)).toBe(true);
  });

  test("tool calls come in fragments by index, with finish_reason tool_calls", async () => {
    const sandbox = await start();
    const look = { type: "function", function: { name: "look_around" } };
    const words = "Use current_time in Tokyo and look_around";
    const response = await ask(sandbox, words, { stream: true, tools: [TOOL, look] });
    const chunks = chunksOf(await response.text());
    const deltas = chunks.flatMap((chunk) => chunk.choices[0]?.delta.tool_calls ?? []);
    const joined = [0, 1].map((index) => deltas.filter((delta) => delta.index === index));
    expect(joined.map((parts) => JSON.parse(parts.map((part) => part.function.arguments).join("")))).toEqual([
      { zone: "Asia/Tokyo" },
      {},
    ]);
    expect(joined.map((parts) => parts[0]?.function.name)).toEqual(["current_time", "look_around"]);
    expect(new Set(deltas.flatMap(({ id }) => id ?? [])).size).toBe(2);
    expect(chunks.at(-1)?.choices[0]).toEqual({ index: 0, delta: {}, finish_reason: "tool_calls" });
  });

  test("a refusal comes before the response headers, so it has its own status", async () => {
    const sandbox = await start();
    expect(await refusalOf(ask(sandbox, "hi", { stream: true, temperature: 5 }))).toMatchObject({
      status: 400,
      param: "temperature",
    });
    expect(await refusalOf(ask(sandbox, "hi", { stream: true, model: "gone" }))).toMatchObject({ status: 404 });
  });

  test("a speed in the words or the model's suffix spreads the text over time, and the answering model has no suffix", async () => {
    const sandbox = await start();
    for (const [words, model] of [
      ["at 100 words per second, say: a b c d e f g h", "sandbox-chat"],
      ["say: a b c d e f g h", "sandbox-chat:speed=100"],
    ]) {
      const startedAt = performance.now();
      const chunks = chunksOf(await (await ask(sandbox, words, { stream: true, model })).text());
      // Eight tokens at a hundred per second. Only the lower bound is certain.
      expect(performance.now() - startedAt).toBeGreaterThan(60);
      expect([textOf(chunks), chunks[0]?.model]).toEqual(["a b c d e f g h", "sandbox-chat"]);
    }
  });
});
