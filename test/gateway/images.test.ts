import { describe, expect, test } from "vitest";
import { recordingLog } from "../../lab/support/log.ts";
import { linked } from "../../lab/support/picture-turn.ts";
import { parseImage } from "../../src/gateway/image-answer.ts";
import type { ImageRequest } from "../../src/gateway/image-ways.ts";
import { createSafeText } from "../../src/gateway/safe-text.ts";
import { picture as pictureOf } from "../sandbox/sandbox.ts";
import { type Answer, json, refusal, startFaultServer } from "../support/fault-server.ts";
import { connect, failureOf, KEY, open } from "../support/gateway-client.ts";

const base: ImageRequest = { model: "draw", prompt: "a cat" };
describe("a request for generateContent", () => {
  test("a request for generateContent asks for text and image, and includes only given options", async () => {
    const { url, received } = await startFaultServer(picture());
    await connect(url).generateImage(base, open);
    expect(received[0]?.json).toEqual({
      contents: [{ parts: [{ text: "a cat" }] }],
      generationConfig: { responseModalities: ["TEXT", "IMAGE"] },
    });
  });

  test("a request for generateContent has one fileData part per reference after the text, and ratio and size in imageConfig", async () => {
    const { url, received } = await startFaultServer(picture());
    const fileUri = "https://example.org/a.png?signed=1";
    const references = linked({ mimeType: "image/png", fileUri }, { mimeType: "image/webp", fileUri });
    await connect(url).generateImage({ ...base, references, aspectRatio: "16:9", imageSize: "2K" }, open);
    expect(received[0]?.json).toEqual({
      contents: [
        {
          parts: [
            { text: "a cat" },
            { fileData: { mimeType: "image/png", fileUri } },
            { fileData: { mimeType: "image/webp", fileUri } },
          ],
        },
      ],
      generationConfig: {
        responseModalities: ["TEXT", "IMAGE"],
        imageConfig: { aspectRatio: "16:9", imageSize: "2K" },
      },
    });
  });

  const link = { mimeType: "image/png", fileUri: "https://example.org/a.png" };
  test.each([
    ["model is required", { model: "" }, "model"],
    ["text is required", { prompt: "  " }, "prompt: must not be empty"],
    [
      "mimeType is an image's",
      { references: linked({ ...link, mimeType: "text/html" }) },
      "references[0].mimeType: must be",
    ],
    ["fileUri is a URL", { references: linked({ ...link, fileUri: "/a.png" }) }, "references[0].fileUri: must be an"],
    ["aspectRatio is width:height", { aspectRatio: "wide" }, "aspectRatio: must be width:height"],
    ["imageSize is upper case", { imageSize: "2k" }, "imageSize: must be a number and an upper-case K"],
    ["all problems are named at once", { aspectRatio: "x", imageSize: "y" }, "imageSize"],
  ])(
    "the client does not send a request for generateContent that breaks a rule: %s",
    async (_, fields: Partial<ImageRequest>, words) => {
      const { url, received } = await startFaultServer(picture());
      const failure = await failureOf(connect(url).generateImage({ ...base, ...fields }, open));
      expect(failure).toMatchObject({ kind: "rejected", message: expect.stringContaining(words) });
      expect(received).toEqual([]);
    },
  );
});

const MAX_BYTES = 100_000;
const safe = createSafeText([]);
const parse = (value: unknown) => parseImage(JSON.stringify(value), MAX_BYTES, safe);
const png = await pictureOf("red");
const [red, blue] = [png.toString("base64"), (await pictureOf("blue")).toString("base64")];

describe("the image of an answer", () => {
  test("the client finds the image as inlineData and as inline_data, wherever it is", async () => {
    const shapes = [
      { candidates: [{ content: { parts: [{ text: "here" }, { inlineData: { data: red } }] } }] },
      { candidates: [{ content: { parts: [{ inline_data: { mime_type: "image/png", data: red } }] } }] },
      { inlineData: { data: red } },
      { a: [[[{ b: { inline_data: { data: red } } }]]] },
      [{ candidates: [] }, { inlineData: { data: red } }],
    ];
    for (const shape of shapes) expect(Buffer.from((await parse(shape)).bytes).toString("base64")).toBe(red);
  });

  test("the client takes the first image in the order of the answer", async () => {
    const first = { deep: { er: [{ inlineData: { data: red } }] }, inline_data: { data: blue } };
    expect(Buffer.from((await parse(first)).bytes).toString("base64")).toBe(red);
    const parts = [{ inline_data: { data: blue } }, { inlineData: { data: red } }];
    expect(Buffer.from((await parse({ parts })).bytes).toString("base64")).toBe(blue);
  });

  test("the client takes the first image that has data", async () => {
    for (const empty of ["", " ", "data:image/png;base64,", null]) {
      const parts = [{ inlineData: { data: empty } }, { inline_data: { data: red } }, { inlineData: { data: blue } }];
      expect(Buffer.from((await parse({ parts })).bytes).toString("base64")).toBe(red);
    }
  });

  test("the client uses an image from the model's thoughts only if the answer has no other image", async () => {
    const thought = { thought: true, content: [{ text: "hmm" }, { inlineData: { data: blue } }] };
    const [alone, both] = await Promise.all([
      parse({ parts: [thought, { text: "Here.", inlineData: { data: "" } }] }),
      parse({ parts: [thought, { inlineData: { data: red } }] }),
    ]);
    expect([Buffer.from(alone.bytes).toString("base64"), alone.text]).toEqual([blue, "Here."]);
    expect(Buffer.from(both.bytes).toString("base64")).toBe(red);
  });

  test("the client returns the image with the text next to it, without the model's thoughts", async () => {
    const parts = [{ text: "hmm", thought: true }, { text: "Here" }, { inlineData: { data: red } }, { text: "it is." }];
    expect((await parse({ candidates: [{ content: { parts } }] })).text).toBe("Here\nit is.");
  });

  test.each([
    [{ usageMetadata: { promptTokenCount: 7, candidatesTokenCount: 258 } }, { promptTokens: 7, completionTokens: 258 }],
    [{ usage: { input_tokens: 7, output_tokens: 258 } }, { promptTokens: 7, completionTokens: 258 }],
    [{ usage: { prompt_tokens: 7 } }, { promptTokens: 7, completionTokens: 0 }],
    [{ usage: { total: "many" } }, undefined],
    [{}, undefined],
  ])("the client returns the image with its cost, if the gateway reports it: %j", async (told, usage) => {
    expect((await parse({ inlineData: { data: red }, ...told })).usage).toEqual(usage);
  });

  test("the client finds the image at any depth", async () => {
    const depth = 5_000;
    const text = `${'{"a":'.repeat(depth)}${JSON.stringify({ inlineData: { data: red } })}${"}".repeat(depth)}`;
    expect((await parseImage(text, MAX_BYTES, safe)).mimeType).toBe("image/png");
  });
});

describe("an answer without a usable image", () => {
  test("an image answer is malformed if it is empty, not JSON, or has no image", async () => {
    const html = Buffer.from("<svg onload=alert(1)>").toString("base64");
    const cases = [
      "",
      "<html>",
      "7",
      "{}",
      JSON.stringify({ inlineData: { data: html } }),
      '{"inlineData":{"data":""}}',
    ];
    for (const json of cases)
      expect(await failureOf(parseImage(json, MAX_BYTES, safe))).toMatchObject({ kind: "malformed" });
  });

  test("an image answer is malformed if the image is too large", async () => {
    const data = Buffer.concat([Buffer.from(red, "base64"), Buffer.alloc(MAX_BYTES)]).toString("base64");
    expect(await failureOf(parse({ inlineData: { data } }))).toMatchObject({
      kind: "malformed",
      message: expect.stringContaining(`${MAX_BYTES} bytes`),
    });
  });

  test("an image answer is rejected with the reason if the model declines", async () => {
    const words = { candidates: [{ content: { parts: [{ text: "I cannot draw that." }] }, finishReason: "STOP" }] };
    expect(await failureOf(parse(words))).toMatchObject({
      kind: "rejected",
      message: "The model created no image. It said: I cannot draw that.",
    });
    expect(await failureOf(parse({ promptFeedback: { blockReason: "SAFETY" } }))).toMatchObject({
      kind: "rejected",
      code: "SAFETY",
      reason: "filtered",
      quote: " (SAFETY).",
    });
  });

  test("an image answer with an error object is reported with its message", async () => {
    expect(await failureOf(parse({ error: { message: "no capacity" } }))).toMatchObject({
      kind: "interrupted",
      message: expect.stringContaining("no capacity"),
    });
  });
});

const request: ImageRequest = { model: "vendor/draw", prompt: "a red square" };
const imageKeyHeader = "x-vendor-api-key";
const picture = (): Answer => (response, received) =>
  json(200, {
    candidates: [{ content: { parts: [{ inlineData: { mimeType: "image/jpeg", data: png.toString("base64") } }] } }],
  })(response, received);

/** A gateway that accepts the key only in the vendor's header. */
const byHeader = (): Answer => (response, received) =>
  received.headers[imageKeyHeader] === KEY && received.headers.authorization === undefined
    ? picture()(response, received)
    : refusal(401, "no")(response, received);

describe("an image request", () => {
  test("an image request is a POST on the model's path with the key as a Bearer", async () => {
    const { url, received } = await startFaultServer(picture());
    const image = await connect(url).generateImage(request, open);
    expect(received).toMatchObject([
      {
        method: "POST",
        path: "/v1beta/models/vendor%2Fdraw:generateContent",
        headers: { authorization: `Bearer ${KEY}`, "content-type": "application/json" },
      },
    ]);
    // The type is the one of the bytes, whatever the gateway says.
    expect([image.mimeType, Buffer.from(image.bytes).equals(png)]).toEqual(["image/png", true]);
  });

  test("an image request aborts with the signal's reason", async () => {
    const { promise: arrived, resolve: arrive } = Promise.withResolvers<void>();
    const { url, received } = await startFaultServer(() => arrive());
    const controller = new AbortController();
    const reason = new Error("stopped");
    const image = connect(url).generateImage(request, controller.signal);
    image.catch(() => {});
    await arrived;
    controller.abort(reason);
    await expect(image).rejects.toBe(reason);
    await received[0]?.closed;
  });

  test("the client logs an image request without its prompt", async () => {
    const { url } = await startFaultServer(picture());
    const { log, lines } = recordingLog();
    await connect(url, { log }).generateImage(request, open);
    expect(lines).toMatchObject([{ model: "vendor/draw", mimeType: "image/png", sizeBytes: png.length }]);
    expect(JSON.stringify(lines)).not.toContain("red square");
  });
});

describe("the status 401 from the image endpoint", () => {
  test("the client retries a 401 once with the key in the vendor's header instead of the Bearer", async () => {
    const { url, received } = await startFaultServer(byHeader());
    const gateway = connect(url, { imageKeyHeader });
    await gateway.generateImage(request, open);
    // The client remembers the header for the next image.
    await gateway.generateImage(request, open);
    expect(received.map(({ headers }) => [headers.authorization, headers[imageKeyHeader]])).toEqual([
      [`Bearer ${KEY}`, undefined],
      [undefined, KEY],
      [undefined, KEY],
    ]);
  });

  test("the client reports a second 401 without the key, and makes no third call", async () => {
    const { url, received } = await startFaultServer(refusal(401, `no ${KEY}`));
    const gateway = connect(url, { imageKeyHeader, imageApi: "generate-content" });
    const failure = await failureOf(gateway.generateImage(request, open));
    expect(failure).toMatchObject({ kind: "unauthorized", status: 401 });
    expect(failure.message).not.toContain(KEY);
    expect(received).toHaveLength(2);
  });

  test("a 401 with the remembered header is an error, and the client starts with the Bearer again for the next image", async () => {
    const { url, received } = await startFaultServer(refusal(401, "no"), picture(), refusal(401, "no"), picture());
    const gateway = connect(url, { imageKeyHeader });
    await gateway.generateImage(request, open);
    await failureOf(gateway.generateImage(request, open));
    await gateway.generateImage(request, open);
    expect(received.map(({ headers }) => headers.authorization === undefined)).toEqual([false, true, true, false]);
  });

  test("a 401 without a configured header says which variable to set", async () => {
    const { url, received } = await startFaultServer(refusal(401, "no"));
    const failure = await failureOf(connect(url).generateImage(request, open));
    expect(failure.message).toContain("GATEWAY_IMAGE_KEY_HEADER");
    expect(received.map(({ path }) => path.split("/").at(-1))).toEqual([
      "vendor%2Fdraw:generateContent",
      "generations",
      "completions",
    ]);
  });

  test("the client retries only a 401 with the vendor's header", async () => {
    for (const status of [400, 403, 404]) {
      const { url, received } = await startFaultServer(refusal(status, "no"));
      await failureOf(connect(url, { imageKeyHeader, imageApi: "generate-content" }).generateImage(request, open));
      expect(received).toHaveLength(1);
    }
  });
});

test("the client refuses an image larger than the limit while it arrives", async () => {
  const data = Buffer.alloc(3_000_000).toString("base64");
  const { url } = await startFaultServer(json(200, { inlineData: { data } }));
  const failure = await failureOf(connect(url, { limits: { maxImageBytes: 1_000 } }).generateImage(request, open));
  expect(failure).toMatchObject({ kind: "malformed", message: expect.stringContaining("larger than") });
});
