import { ApiError, type GenerateContentResponse, GoogleGenAI, Modality, type Part } from "@google/genai";
import OpenAI, {
  APIConnectionError,
  AuthenticationError,
  BadRequestError,
  InternalServerError,
  NotFoundError,
  PermissionDeniedError,
  RateLimitError,
} from "openai";
import sharp from "sharp";
import { describe, expect, test } from "vitest";
import { dataUrl, picture, serveFiles, start } from "./sandbox.ts";

const MODEL = "sandbox-chat";
const TOOL = {
  type: "function" as const,
  function: {
    name: "current_time",
    description: "The time in a zone.",
    parameters: { type: "object", properties: { zone: { type: "string" } }, required: ["zone"] },
  },
};

function openai(url: string, apiKey = "sk-sandbox-all"): OpenAI {
  return new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 });
}

/** Google's unmodified client. It sends its key in its own header and never as Bearer. */
function genai(baseUrl: string, apiKey = "sk-sandbox-header"): GoogleGenAI {
  return new GoogleGenAI({ apiKey, httpOptions: { baseUrl } });
}

function partsOf({ candidates }: GenerateContentResponse): Part[] {
  return candidates?.[0]?.content?.parts ?? [];
}

function pictureOf(answer: GenerateContentResponse): string {
  return partsOf(answer).find(({ inlineData }) => inlineData !== undefined)?.inlineData?.data ?? "";
}

describe("the openai client", () => {
  test("the openai client lists and retrieves models", async () => {
    const { url } = await start();
    const ids: string[] = [];
    for await (const model of openai(url).models.list()) ids.push(model.id);
    expect(ids).toEqual(["sandbox-chat", "sandbox-text", "sandbox-image"]);
    expect((await openai(url).models.retrieve("sandbox-text")).id).toBe("sandbox-text");
  });

  test("the openai client completes whole and streamed", async () => {
    const { url } = await start();
    const messages = [{ role: "user" as const, content: "say: Hello 世界, again and again" }];
    const whole = await openai(url).chat.completions.create({ model: MODEL, messages });
    expect(whole.choices[0]?.message.content).toBe("Hello 世界, again and again");
    const stream = openai(url).chat.completions.stream({
      model: MODEL,
      messages,
      stream_options: { include_usage: true },
    });
    const final = await stream.finalChatCompletion();
    expect(final.choices[0]).toMatchObject({
      finish_reason: "stop",
      message: { role: "assistant", content: "Hello 世界, again and again" },
    });
    expect(final.usage).toEqual(whole.usage);
  });

  test("the openai client calls tools in two steps, by hand and with its own runner", async () => {
    const { url } = await start();
    const asked = { role: "user" as const, content: "Use current_time in Tokyo and look_around." };
    const look = { type: "function" as const, function: { name: "look_around", parameters: {} } };
    const first = await openai(url).chat.completions.create({
      model: MODEL,
      messages: [asked],
      tools: [TOOL, look],
      tool_choice: "auto",
    });
    const message = first.choices[0]?.message;
    expect([first.choices[0]?.finish_reason, message?.tool_calls?.length]).toEqual(["tool_calls", 2]);
    const results = (message?.tool_calls ?? []).map((call) => ({
      role: "tool" as const,
      tool_call_id: call.id,
      content: "12:00",
    }));
    if (message === undefined) throw new Error("There was no message.");
    const second = await openai(url).chat.completions.create({
      model: MODEL,
      messages: [asked, message, ...results],
      tools: [TOOL],
    });
    expect(second.choices[0]?.message.content).toContain("**current_time**: 12:00");

    const runner = openai(url).chat.completions.runTools({
      model: MODEL,
      stream: true,
      messages: [asked],
      tools: [
        {
          ...TOOL,
          function: {
            ...TOOL.function,
            parse: JSON.parse,
            function: ({ zone }: { zone: string }) => `noon in ${zone}`,
          },
        },
      ],
    });
    expect(await runner.finalContent()).toMatch(/noon in Asia\/Tokyo/);
  });

  test("the openai client sends images", async () => {
    const { url } = await start();
    const content = [
      { type: "text" as const, text: "What do you see?" },
      { type: "image_url" as const, image_url: { url: dataUrl(await picture("#2d5ac8", 12, 34)) } },
    ];
    const { choices } = await openai(url).chat.completions.create({
      model: MODEL,
      messages: [{ role: "user", content }],
    });
    expect(choices[0]?.message.content).toBe("I see one picture: PNG, 12 × 34 pixels, mostly blue.");
  });

  test("the openai client throws its own class for each error", async () => {
    const { url } = await start({ requestsPerMinute: 3 });
    const create = (model: string, fields: object = {}, key?: string) =>
      openai(url, key).chat.completions.create({ model, messages: [{ role: "user", content: "hi" }], ...fields });
    await expect(create(MODEL, {}, "sk-wrong")).rejects.toThrow(AuthenticationError);
    await expect(create(MODEL, { temperature: 3 })).rejects.toThrow(BadRequestError);
    await expect(create("gone")).rejects.toThrow(NotFoundError);
    await expect(openai(url, "sk-sandbox-chat").models.retrieve("sandbox-image")).rejects.toThrow(
      PermissionDeniedError,
    );
    await expect(create(`${MODEL}:500`)).rejects.toThrow(InternalServerError);
    await expect(create(`${MODEL}:reset`)).rejects.toThrow(APIConnectionError);
    await create(MODEL);
    const limited: unknown = await create(MODEL).catch((error: unknown) => error);
    expect(limited).toBeInstanceOf(RateLimitError);
    expect(limited).toMatchObject({ status: 429, code: "rate_limit_exceeded", type: "rate_limit_error", param: null });
  });
});

describe("the @google/genai client", () => {
  const config = {
    responseModalities: [Modality.TEXT, Modality.IMAGE],
    imageConfig: { aspectRatio: "16:9", imageSize: "1K" },
  };

  test.each(["v1", "v1beta"])(
    "the @google/genai client creates an image with two references under /%s",
    async (apiVersion) => {
      const origin = await serveFiles({ "/a": await picture("red", 9, 9) });
      const { url } = await start({ trustedFileOrigins: [origin] });
      const second = (await picture("blue", 9, 9, "jpeg")).toString("base64");
      const answer = await new GoogleGenAI({
        apiKey: "sk-sandbox-header",
        httpOptions: { baseUrl: url, apiVersion },
      }).models.generateContent({
        model: "sandbox-image",
        contents: [
          { text: "Both together" },
          { fileData: { mimeType: "image/png", fileUri: `${origin}/a` } },
          { inlineData: { mimeType: "image/jpeg", data: second } },
        ],
        config: { ...config, systemInstruction: "Be bold." },
      });
      expect(
        partsOf(answer)
          .map(({ text }) => text)
          .join(""),
      ).toContain("2 reference pictures");
      const png = Buffer.from(pictureOf(answer), "base64");
      expect(await sharp(png).metadata()).toMatchObject({ format: "png", width: 1360, height: 765 });
    },
  );

  test("the @google/genai client lists and gets models", async () => {
    const { url } = await start();
    // Under /v1, the list has the form of the chat API.
    const httpOptions = { baseUrl: url, apiVersion: "v1beta" };
    const { models } = new GoogleGenAI({ apiKey: "sk-sandbox-header", httpOptions });
    const names: (string | undefined)[] = [];
    for await (const { name } of await models.list()) names.push(name);
    expect(names).toEqual(["models/sandbox-chat", "models/sandbox-text", "models/sandbox-image"]);
    expect(await models.get({ model: "sandbox-image" })).toMatchObject({
      name: "models/sandbox-image",
      supportedActions: ["generateContent", "streamGenerateContent"],
    });
  });

  test("the @google/genai client creates an image from a plain string, whole and as a stream", async () => {
    const asked = { model: "sandbox-image", contents: "a star" };
    const whole = pictureOf(await genai((await start()).url).models.generateContent(asked));
    expect(whole.length).toBeGreaterThan(1000);
    const parts = await genai((await start()).url).models.generateContentStream(asked);
    for await (const part of parts) expect(pictureOf(part).length).toBeGreaterThan(1000);
    expect.assertions(2);
  });

  test("the @google/genai client throws its own class for errors", async () => {
    const { url } = await start();
    const refused = (apiKey: string, model: string, fields: object = {}) =>
      genai(url, apiKey)
        .models.generateContent({ model, contents: "a star", config: { ...config, ...fields } })
        .catch((error: unknown) => error);
    for (const [key, model, status] of [
      ["sk-wrong", "sandbox-image", 401],
      ["sk-sandbox-chat", "sandbox-image", 403],
      ["sk-sandbox-all", "gone", 404],
    ] as const) {
      const error = await refused(key, model);
      expect(error).toBeInstanceOf(ApiError);
      expect(error).toMatchObject({ status });
    }
    expect(await refused("sk-sandbox-all", "sandbox-image", { imageConfig: { imageSize: "1k" } })).toMatchObject({
      status: 400,
    });
  });
});
