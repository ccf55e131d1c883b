import { describe, expect, test } from "vitest";
import { recordingLog } from "../../lab/support/log.ts";
import { linked } from "../../lab/support/picture-turn.ts";
import type { GeneratedImage } from "../../src/gateway/image-answer.ts";
import type { ImageRequest, ReferenceSource } from "../../src/gateway/image-ways.ts";
import { picture } from "../sandbox/sandbox.ts";
import { type Answer, json, refusal, startFaultServer } from "../support/fault-server.ts";
import { connect, failureOf, open } from "../support/gateway-client.ts";

const GOOGLE = "/v1beta/models/painter:generateContent";
const IMAGES = "/v1/images/generations";
const EDITS = "/v1/images/edits";
const CHAT = "/v1/chat/completions";
const request: ImageRequest = { model: "painter", prompt: "a red square" };

const png = await picture("red");
const data = png.toString("base64");

const byGoogle: Answer = (response, received) =>
  json(200, { candidates: [{ content: { parts: [{ inlineData: { data } }] } }] })(response, received);
const byImages: Answer = (response, received) =>
  json(200, { created: 1, data: [{ b64_json: data }], usage: { input_tokens: 7, output_tokens: 258 } })(
    response,
    received,
  );
const byChat: Answer = (response, received) =>
  answerInChat({ images: [{ image_url: { url: toUrl() } }] })(response, received);

function toUrl(): string {
  return `data:image/png;base64,${data}`;
}

function answerInChat(message: object): Answer {
  return json(200, {
    choices: [{ message: { role: "assistant", content: "Here.", ...message }, finish_reason: "stop" }],
  });
}

/** A gateway that has only these paths. For all others it responds as OpenAI does. */
async function serve(paths: Record<string, Answer | Answer[]>) {
  const counts = new Map<string, number>();
  const server = await startFaultServer((response, received) => {
    const { path } = received;
    const answers = [paths[path] ?? []].flat();
    const count = counts.get(path) ?? 0;
    counts.set(path, count + 1);
    const unknown = refuse(404, { message: `Invalid URL (POST ${path})` });
    return (answers[Math.min(count, answers.length - 1)] ?? unknown)(response, received);
  });
  const bodiesAt = (path: string) => server.received.filter((one) => one.path === path).map(({ json: body }) => body);
  const asked = () => server.received.map(({ path }) => path);
  return { ...server, bodiesAt, asked };
}

function refuse(status: number, error: { message: string; code?: string; param?: string; type?: string }): Answer {
  return json(status, { error: { type: "invalid_request_error", code: null, param: null, ...error } });
}

/** Images without links. */
function bytesOnly(count = 1): ReferenceSource {
  return {
    links: () => Promise.reject(new Error("There is no link.")),
    load: async () => Array.from({ length: count }, () => ({ mimeType: "image/png", bytes: png })),
  };
}

function expectPicture({ bytes, mimeType }: GeneratedImage): void {
  expect([mimeType, Buffer.from(bytes).equals(png)]).toEqual(["image/png", true]);
}

describe("a gateway without generateContent", () => {
  test("the client creates an image by POST /images/generations, and remembers this for the model", async () => {
    const { url, asked, bodiesAt } = await serve({ [IMAGES]: byImages });
    const gateway = connect(url);
    const image = await gateway.generateImage(request, open);
    expectPicture(image);
    expect(image.usage).toEqual({ promptTokens: 7, completionTokens: 258 });
    await gateway.generateImage(request, open);
    expect(asked()).toEqual([GOOGLE, IMAGES, IMAGES]);
    const body = { ...request, response_format: "b64_json" };
    expect(bodiesAt(IMAGES)).toEqual([body, body]);
  });

  test("the client creates an image by chat completions with modalities if the image path is missing too", async () => {
    const { url, asked, bodiesAt } = await serve({ [CHAT]: byChat });
    const gateway = connect(url);
    const image = await gateway.generateImage(request, open);
    expectPicture(image);
    expect(image.text).toBe("Here.");
    await gateway.generateImage(request, open);
    expect(asked().at(-1)).toBe(CHAT);
    expect(bodiesAt(CHAT)).toHaveLength(2);
    expect(bodiesAt(CHAT)[0]).toEqual({
      model: "painter",
      messages: [{ role: "user", content: "a red square" }],
      modalities: ["image", "text"],
    });
  });

  test.each([
    [
      "Google's words for another method",
      {
        [GOOGLE]: refuse(404, {
          message: "models/painter is not found for API version v1beta, or is not supported for generateContent.",
        }),
      },
    ],
    ["a method that is not allowed", { [GOOGLE]: refuse(405, { message: "Method Not Allowed" }) }],
    ["a model that is none for this path", { [GOOGLE]: refuse(400, { message: "painter is not a chat model" }) }],
    ["an answer that is not implemented", { [GOOGLE]: refuse(501, { message: "not implemented" }) }],
    ["a key that only OpenAI's paths accept", { [GOOGLE]: refusal(401, "no Bearer") }],
  ])("the client recognises a gateway without generateContent by %s", async (_, paths) => {
    const { url, asked } = await serve({ ...paths, [IMAGES]: byImages });
    expectPicture(await connect(url).generateImage(request, open));
    expect(asked()).toEqual([GOOGLE, IMAGES]);
  });

  test("the client tries chat if the image path does not accept the model", async () => {
    const words = "The model 'painter' is not supported with this endpoint.";
    const { url, asked } = await serve({ [IMAGES]: refuse(400, { message: words }), [CHAT]: byChat });
    expectPicture(await connect(url).generateImage(request, open));
    expect(asked()).toEqual([GOOGLE, IMAGES, CHAT]);
  });

  test("the client tries the other endpoints again if the remembered endpoint disappears", async () => {
    const { url, asked } = await serve({ [GOOGLE]: [byGoogle, refusal(404, "gone")], [IMAGES]: byImages });
    const gateway = connect(url);
    await gateway.generateImage(request, open);
    expectPicture(await gateway.generateImage(request, open));
    expect(asked()).toEqual([GOOGLE, GOOGLE, IMAGES]);
  });
});

describe("an image that may already have been created", () => {
  test.each([
    ["an answer without a picture", json(200, {})],
    ["a refusal of the key", refusal(403, "not supported")],
    ["a safety filter", refuse(400, { message: "Not allowed.", code: "moderation_blocked" })],
  ])("the client tries no other way after %s", async (_, answer) => {
    const { url, asked } = await serve({ [GOOGLE]: answer, [IMAGES]: byImages });
    await failureOf(connect(url).generateImage(request, open));
    expect(asked()).toEqual([GOOGLE]);
  });
});

describe("a model that cannot create images", () => {
  test("a failure lists all attempted ways and the gateway's responses", async () => {
    const { url } = await serve({ [CHAT]: refuse(400, { message: "modalities: image is not supported" }) });
    const failure = await failureOf(connect(url).generateImage(request, open));
    expect(failure).toMatchObject({ kind: "rejected", type: "no_way" });
    expect(failure.logMessage).toMatch(
      /generateContent \(404\), POST \S+generations \(404\), POST \S+ with modalities \(400\)/,
    );
  });

  test("the client sends a model that cannot create images no request that it could answer in words", async () => {
    const refused = refuse(400, { message: "This model does not support the requested output modalities." });
    const { url, bodiesAt } = await serve({ [CHAT]: refused });
    await failureOf(connect(url).generateImage(request, open));
    const modalities = bodiesAt(CHAT).map((body) => (body as { modalities?: string[] }).modalities);
    expect(modalities).toEqual([["image", "text"], ["image"]]);
  });

  test("one rejection does not prove that a model which has created images no longer can", async () => {
    const message = "Editing is not supported by this model.";
    const { url } = await serve({ [IMAGES]: byImages, [EDITS]: refuse(400, { message }) });
    const gateway = connect(url);
    await gateway.generateImage(request, open);
    const failure = await failureOf(gateway.generateImage({ ...request, references: bytesOnly() }, open));
    expect(failure.message).toContain(message);
  });

  test("a temporary failure does not prove that a model cannot create images", async () => {
    const { url, asked } = await serve({ [GOOGLE]: [refusal(500, "The model is not available just now."), byGoogle] });
    expectPicture(await connect(url).generateImage(request, open));
    expect(asked()).toEqual([GOOGLE, GOOGLE]);
  });

  test("the client reports a model as unknown if the gateway says so for one of the ways", async () => {
    const unknown = refuse(404, { message: "The model `painter` does not exist", code: "model_not_found" });
    const { url } = await serve({ [IMAGES]: unknown, [CHAT]: unknown });
    expect(await failureOf(connect(url).generateImage(request, open))).toMatchObject({ reason: "unknown-model" });
  });
});

describe("IMAGE_API", () => {
  test.each([
    ["generate-content" as const, GOOGLE, byGoogle],
    ["images" as const, IMAGES, byImages],
    ["chat" as const, CHAT, byChat],
  ])("the variable IMAGE_API sets the only way that the client uses: %s", async (imageApi, path, answer) => {
    const { url, asked } = await serve({ [path]: answer });
    expectPicture(await connect(url, { imageApi }).generateImage(request, open));
    expect(asked()).toEqual([path]);
  });
});

describe("reference images without a link", () => {
  test("the client sends references as files to POST /images/edits", async () => {
    const { url, received } = await serve({ [EDITS]: byImages });
    expectPicture(
      await connect(url, { imageApi: "images" }).generateImage({ ...request, references: bytesOnly(2) }, open),
    );
    const [form] = received.map((one) => one.form);
    expect([form?.get("model"), form?.get("prompt")]).toEqual(["painter", "a red square"]);
    const files = (form?.getAll("image[]") ?? []).map((file) => (file instanceof File ? file.type : undefined));
    expect(files).toEqual(["image/png", "image/png"]);
  });

  test("the client sends references as data URLs in a chat", async () => {
    const { url, bodiesAt } = await serve({ [CHAT]: byChat });
    await connect(url, { imageApi: "chat" }).generateImage({ ...request, references: bytesOnly() }, open);
    const content = [
      { type: "text", text: "a red square" },
      { type: "image_url", image_url: { url: toUrl() } },
    ];
    expect(bodiesAt(CHAT)).toMatchObject([{ messages: [{ role: "user", content }] }]);
  });

  test("the client finds the way of a model even in a request with references", async () => {
    const { url, asked } = await serve({ [EDITS]: byImages });
    expectPicture(await connect(url).generateImage({ ...request, references: bytesOnly() }, open));
    expect(asked()).toEqual([EDITS]);
  });

  test("the error names the references as the reason if only generateContent could use them", async () => {
    const { url } = await serve({ [GOOGLE]: byGoogle });
    const gateway = connect(url);
    const drawn = () => gateway.generateImage({ ...request, references: bytesOnly() }, open);
    await expect(drawn()).rejects.toThrow("There is no link.");
    await gateway.generateImage({ ...request, references: linked() }, open);
    await expect(drawn()).rejects.toThrow("There is no link.");
  });
});

describe("the ratio and size of an image", () => {
  test.each([
    ["gpt-image-1", "1:1", undefined, ["1024x1024"], []],
    ["gpt-image-1", "16:9", undefined, ["1536x1024"], ["16:9"]],
    ["gpt-image-1-mini", "2:3", "2K", ["1024x1536"], ["2K"]],
    ["dall-e-3", "16:9", "1K", ["1792x1024"], []],
    ["painter", "16:9", undefined, ["1360x768"], []],
    ["painter", "1:1", "4K", ["4096x4096"], []],
    ["painter", undefined, undefined, [undefined], []],
  ])(
    "the model %s draws %s at %s by the sizes in pixels that it documents",
    async (model, aspectRatio, imageSize, sizes, unmet) => {
      const { url, bodiesAt } = await serve({ [IMAGES]: byImages });
      const asked = { ...request, model, ...(aspectRatio && { aspectRatio }), ...(imageSize && { imageSize }) };
      const image = await connect(url, { imageApi: "images" }).generateImage(asked, open);
      expect(bodiesAt(IMAGES).map((body) => (body as { size?: string }).size)).toEqual(sizes);
      expect(image.unmet ?? []).toEqual(unmet);
    },
  );

  test("the client turns ratio and size into the nearest accepted size, and remembers it", async () => {
    const takesFixed: Answer = (response, received) => {
      const { size = "" } = received.json as { size?: string };
      const isTaken = ["1024x1024", "1536x1024", "1024x1536"].includes(size);
      const message = `Invalid value: '${size}'. Supported values are: '1024x1024', '1024x1536', '1536x1024', and 'auto'.`;
      return (isTaken ? byImages : refuse(400, { message, param: "size", code: "invalid_value" }))(response, received);
    };
    const { url, bodiesAt } = await serve({ [IMAGES]: takesFixed });
    const gateway = connect(url, { imageApi: "images" });
    const asked = { ...request, aspectRatio: "16:9", imageSize: "2K" };
    expect((await gateway.generateImage(asked, open)).unmet).toEqual(["16:9", "2K"]);
    await gateway.generateImage(asked, open);
    const sizes = bodiesAt(IMAGES).map((body) => (body as { size?: string }).size);
    expect(sizes).toEqual(["2736x1536", "1360x768", "1536x1024", "1536x1024"]);
  });

  test.each([
    ["generate-content" as const, GOOGLE, byGoogle, "Request contains an invalid argument."],
    ["generate-content" as const, GOOGLE, byGoogle, "Invalid value at 'generation_config.image_config.aspect_ratio'"],
    ["chat" as const, CHAT, byChat, "image_config.aspect_ratio: 8:1 is not one of 1:1, 16:9"],
  ])(
    "the client leaves ratio and size out if the gateway refuses them, and the image says so: %s",
    async (imageApi, path, answer, message) => {
      const { url, bodiesAt } = await serve({ [path]: [refuse(400, { message }), answer] });
      const image = await connect(url, { imageApi }).generateImage({ ...request, aspectRatio: "8:1" }, open);
      expect(image.unmet).toEqual(["8:1"]);
      expect(JSON.stringify(bodiesAt(path).map((body) => JSON.stringify(body).includes("8:1")))).toBe("[true,false]");
    },
  );

  test("the client sends ratio and size to a chat model in image_config", async () => {
    const { url, bodiesAt } = await serve({ [CHAT]: byChat });
    const asked = { ...request, aspectRatio: "8:1", imageSize: "2K" };
    await connect(url, { imageApi: "chat" }).generateImage(asked, open);
    expect(bodiesAt(CHAT)).toMatchObject([{ image_config: { aspect_ratio: "8:1", image_size: "2K" } }]);
  });
});

describe("images in a gateway's own format", () => {
  test("the client downloads an image that comes as a link, and from then on requests bytes at once", async () => {
    const link = json(200, { data: [{ url: "https://pictures.example/1.png" }] });
    const { url, bodiesAt } = await serve({ [IMAGES]: [link, byImages] });
    const gateway = connect(url, { imageApi: "images" });
    const asked = { ...request, model: "gpt-image-1" };
    expectPicture(await gateway.generateImage(asked, open));
    await gateway.generateImage(asked, open);
    const formats = bodiesAt(IMAGES).map((body) => (body as { response_format?: string }).response_format);
    expect(formats).toEqual([undefined, "b64_json", "b64_json"]);
  });

  test("the client reports an answer that is still a link as an error", async () => {
    const { url, asked } = await serve({ [IMAGES]: json(200, { data: [{ url: "https://pictures.example/1.png" }] }) });
    const failure = await failureOf(connect(url, { imageApi: "images" }).generateImage(request, open));
    expect(failure).toMatchObject({ kind: "malformed", message: expect.stringContaining("a link instead of") });
    expect(asked()).toHaveLength(1);
  });

  test("the client asks for bytes, unless the model rejects that", async () => {
    const refused = refuse(400, { message: "Unknown parameter: 'response_format'.", param: "response_format" });
    const { url, bodiesAt } = await serve({ [IMAGES]: [refused, byImages] });
    const gateway = connect(url, { imageApi: "images" });
    await gateway.generateImage(request, open);
    await gateway.generateImage(request, open);
    await gateway.generateImage({ ...request, model: "gpt-image-1" }, open);
    const formats = bodiesAt(IMAGES).map((body) => (body as { response_format?: string }).response_format);
    expect(formats).toEqual(["b64_json", undefined, undefined, undefined]);
  });

  test("the client names only images in a request to a model that writes no text", async () => {
    const words = "No endpoints found that support the requested output modalities: image, text";
    const { url, bodiesAt } = await serve({ [CHAT]: [refuse(404, { message: words }), byChat] });
    const gateway = connect(url, { imageApi: "chat" });
    await gateway.generateImage(request, open);
    await gateway.generateImage(request, open);
    const modalities = bodiesAt(CHAT).map((body) => (body as { modalities: string[] }).modalities);
    expect(modalities).toEqual([["image", "text"], ["image"], ["image"]]);
  });

  const inText = () => `Here it is: ![a square](${toUrl()}) Enjoy.`;
  test.each([
    ["a content part", () => answerInChat({ content: [{ type: "image_url", image_url: { url: toUrl() } }] }), ""],
    [
      "a part with the bytes",
      () =>
        answerInChat({
          content: [
            { type: "text", text: "Look." },
            { type: "image", b64_json: data },
          ],
        }),
      "Look.",
    ],
    [
      "an address without an object",
      () => answerInChat({ images: [{ type: "image_url", image_url: toUrl() }] }),
      "Here.",
    ],
    ["the text", () => answerInChat({ content: inText() }), "Here it is:  Enjoy."],
    [
      "a text part of generateContent",
      () => json(200, { candidates: [{ content: { parts: [{ text: inText() }] } }] }),
      "Here it is:  Enjoy.",
    ],
    [
      "a picture beside thoughts",
      () => answerInChat({ reasoning_details: [{ text: "hmm" }], images: [{ image_url: { url: toUrl() } }] }),
      "Here.",
    ],
  ])("the client finds an image in a chat as %s", async (_, answer, text) => {
    const { url } = await serve({ [CHAT]: answer() });
    const image = await connect(url, { imageApi: "chat" }).generateImage(request, open);
    expectPicture(image);
    expect(image.text).toBe(text);
  });
});

test("the client recognises a safety filter by any of its common names", async () => {
  const { log } = recordingLog();
  const answers = [
    json(200, { candidates: [{ finishReason: "IMAGE_SAFETY" }] }),
    json(200, { candidates: [{ finish_reason: "prohibited_content" }] }),
    json(200, { promptFeedback: { blockReason: "PROHIBITED_CONTENT" } }),
    json(200, { prompt_feedback: { block_reason: "image_safety" } }),
    json(200, { choices: [{ message: { content: null }, finish_reason: "content_filter" }] }),
    refuse(400, { message: "Rejected.", code: "moderation_blocked", type: "image_generation_user_error" }),
    refuse(400, { message: "Your request was rejected by the safety system. safety_violations=[sexual]." }),
    refuse(400, { message: "Gemini image generation blocked [IMAGE_SAFETY]: policy", code: "channel:failed" }),
    refuse(400, { message: "no", code: "imageProhibitedContent" }),
  ];
  const { describePictureFailure } = await import("../../src/imagine/failure.ts");
  for (const answer of answers) {
    const { url } = await serve({ [GOOGLE]: answer });
    const failure = await failureOf(connect(url, { log }).generateImage(request, open));
    expect(describePictureFailure(failure, "painter", 0)).toEqual({
      reason: "The AI service's safety filter blocked this image. Describe it differently.",
      canRetry: true,
    });
  }
});
