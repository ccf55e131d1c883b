import { describe, expect, onTestFinished, test } from "vitest";
import { type Fields, isRecord } from "../../lab/gateway/dialect.ts";
import { DIALECT_NAMES, type DialectName } from "../../lab/gateway/dialects/index.ts";
import { type RunningDialect, startDialect } from "../../lab/gateway/server.ts";
import { merge } from "../../lab/gateway/stream.ts";

async function start(dialect: DialectName): Promise<RunningDialect> {
  const gateway = await startDialect({ dialect });
  onTestFinished(() => gateway.close());
  return gateway;
}

async function ask({ url, apiKey, chatModel }: RunningDialect, fields: Fields): Promise<Response> {
  return fetch(`${url}/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
    body: JSON.stringify({ model: chatModel, stream: true, ...fields }),
  });
}

/** Reads a stream into one message by merging all deltas. */
async function readMessage(response: Response): Promise<Fields> {
  const text = await response.text();
  if (!response.ok) throw new Error(text);
  const deltas = text.split("\n").flatMap((line): unknown[] => {
    if (!line.startsWith("data: {")) return [];
    const event: unknown = JSON.parse(line.slice(6));
    const choices = isRecord(event) && Array.isArray(event["choices"]) ? event["choices"] : [];
    return choices.map((choice: unknown) => (isRecord(choice) ? (choice["delta"] ?? {}) : {}));
  });
  const message = deltas.reduce(merge, {});
  return isRecord(message) ? message : {};
}

const WEATHER = {
  type: "function",
  function: {
    name: "get_weather",
    description: "The weather.",
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  },
};
const TOOLLESS: readonly DialectName[] = ["perplexity", "vllm-gemma", "ollama"];
const asks = (content: unknown, more: object = {}) => ({ role: "user", content, ...more });
const called = { id: "abcdefgh1", type: "function", function: { name: "get_weather", arguments: "{}" } };
const calls = { role: "assistant", content: null, tool_calls: [called] };
const result = { role: "tool", tool_call_id: "abcdefgh1", content: "sunny" };
const picture = asks([{ type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } }]);
const schema = (city: object) => ({
  tools: [{ type: "function", function: { name: "a", parameters: { type: "object", properties: { city } } } }],
});

describe("a dialect", () => {
  test.each(DIALECT_NAMES.filter((name) => !TOOLLESS.includes(name)))(
    "a dialect accepts a client of %s that returns the assistant message unchanged",
    async (name) => {
      const gateway = await start(name);
      const question = asks("use get_weather");
      const first = await readMessage(await ask(gateway, { messages: [question], tools: [WEATHER] }));
      const made: unknown = Array.isArray(first["tool_calls"]) ? first["tool_calls"][0] : undefined;
      const id = isRecord(made) ? made["id"] : undefined;
      const answer = { ...first, content: first["content"] || null };
      const messages = [question, answer, { role: "tool", tool_call_id: id, content: "sunny" }];
      const second = await readMessage(await ask(gateway, { messages, tools: [WEATHER] }));
      expect(second["content"]).toContain("**get_weather**: sunny");
    },
  );

  test.each(TOOLLESS)("a dialect answers a plain question as %s", async (name) => {
    const message = await readMessage(await ask(await start(name), { messages: [asks("say: Hello.")] }));
    expect(message["content"]).toBe("Hello.");
  });

  test.each<[DialectName, Fields, number, string]>([
    ["openai", { temperature: 0.3 }, 400, '"code":"unsupported_value"'],
    ["openai", { max_tokens: 9 }, 400, "max_completion_tokens"],
    ["openai", { messages: [asks("Hi", { name: "Ada Lovelace" })] }, 400, '"param":"messages[0].name"'],
    ["openai", { response_format: { type: "json_object" } }, 400, "must contain the word 'json'"],
    ["gemini", { frequency_penalty: 1 }, 400, "Cannot find field"],
    ["gemini", schema({ type: ["string", "null"] }), 400, "cannot start list"],
    ["gemini", { messages: [asks("Hi"), calls, result] }, 400, "missing a thought_signature"],
    ["vertex", schema({ description: "a city" }), 400, "didn't specify the schema type"],
    ["mistral", { user: "u" }, 422, '"loc":["body","user"]'],
    ["mistral", { messages: [asks("Hi", { name: "Ada" })] }, 422, '"loc":["body","messages",0,"user","name"]'],
    [
      "mistral",
      { messages: [asks("Hi"), calls, result, asks("And?")] },
      400,
      "Unexpected role 'user' after role 'tool'",
    ],
    ["deepseek", { messages: [asks("Hi"), calls, result] }, 400, "must be passed back"],
    ["deepseek", { messages: [picture] }, 400, "unknown variant `image_url`"],
    ["kimi", { temperature: 0.3 }, 400, "only 1 is allowed"],
    ["kimi", { messages: [asks("Hi"), calls, result] }, 400, "reasoning_content is missing"],
    ["xai", { presence_penalty: 1 }, 400, "presencePenalty"],
    ["perplexity", { messages: [asks("Hi"), asks("And?")] }, 400, "should alternate"],
    ["perplexity", { tools: [WEATHER] }, 400, "Tool calling is not supported"],
    [
      "groq",
      { messages: [{ ...calls, reasoning_content: "Hm." }, result] },
      400,
      "property 'reasoning_content' is unsupported",
    ],
    ["groq", { tools: [WEATHER], response_format: { type: "json_object" } }, 400, "cannot be combined"],
    ["openrouter", { messages: [asks("Hi"), calls, result] }, 400, "Provider returned error"],
    ["litellm-anthropic", { messages: [asks("Hi"), calls, result] }, 400, "without `tools=` param"],
    [
      "litellm-anthropic",
      { messages: [asks("Hi"), { ...calls, content: "" }, result], tools: [WEATHER] },
      400,
      "non-empty",
    ],
    ["litellm-anthropic", { messages: [asks("Hi"), calls, result], tools: [WEATHER] }, 400, "Expected `thinking`"],
    ["litellm-bedrock", { messages: [asks("Hi"), calls, result] }, 400, "toolConfig field must be defined"],
    [
      "litellm-bedrock",
      { messages: [asks("Hi"), { ...calls, content: "" }, result], tools: [WEATHER] },
      400,
      "is blank",
    ],
    [
      "vllm-gemma",
      { messages: [{ role: "system", content: "Be kind." }, asks("Hi")] },
      400,
      "System role not supported",
    ],
    ["litellm-bedrock", { tools: [WEATHER], tool_choice: "none" }, 400, "tool_choice=none"],
    ["vllm-gemma", { messages: [asks("Hi"), asks("And?")] }, 400, "must alternate"],
    ["vllm-mistral", { messages: [asks("Hi"), asks("And?")] }, 400, "must alternate"],
    ["llama-cpp", { messages: [asks("Hi"), asks("And?")] }, 500, "Jinja Exception"],
    ["ollama", { tools: [WEATHER] }, 400, "does not support tools"],
    ["lm-studio", { response_format: { type: "json_object" } }, 400, '{"error":"'],
    ["lm-studio", { messages: [asks("Hi"), asks("And?")] }, 200, "event: error"],
    ["gpt-oss", { messages: [picture] }, 400, "not a multimodal model"],
  ])("a dialect refuses like %s: %j", async (name, fields, status, words) => {
    const response = await ask(await start(name), { messages: [asks("Hi")], ...fields });
    expect([response.status, await response.text()]).toEqual([status, expect.stringContaining(words)]);
  });

  test("OpenAI's dialect creates and edits images", async () => {
    const { url, apiKey, imageModel = "" } = await start("openai");
    const headers = { authorization: `Bearer ${apiKey}` };
    const body = JSON.stringify({ model: imageModel, prompt: "a red boat", size: "1536x1024" });
    const json = { ...headers, "content-type": "application/json" };
    const drawn: unknown = await (
      await fetch(`${url}/images/generations`, { method: "POST", headers: json, body })
    ).json();
    expect(drawn).toEqual({ created: expect.any(Number), data: [{ b64_json: expect.stringMatching(/^iVBOR/) }] });

    const form = new FormData();
    const base64 = /"b64_json":"([^"]+)"/.exec(JSON.stringify(drawn))?.[1] ?? "";
    const bytes = new Uint8Array(Buffer.from(base64, "base64"));
    for (const [name, value] of Object.entries({ model: imageModel, prompt: "now at night" })) form.append(name, value);
    form.append("image[]", new Blob([bytes], { type: "image/png" }), "boat.png");
    const edited: unknown = await (await fetch(`${url}/images/edits`, { method: "POST", headers, body: form })).json();
    expect(edited).toEqual({ created: expect.any(Number), data: [{ b64_json: expect.stringMatching(/^iVBOR/) }] });
  });
});
