import { randomBytes } from "node:crypto";
import sharp from "sharp";
import { describe, expect, test } from "vitest";
import { draw, file, inline, partsOf, picture, post, refusalOf, serveFiles, start, WORDS } from "./sandbox.ts";

const withParts = (...parts: unknown[]) => ({ contents: [{ parts }] });

describe("the sandbox refuses an image generation request", () => {
  test.each<[string, unknown, string, string]>([
    ["contents is required", {}, "missing_required_parameter", "contents"],
    ["contents is an array", { contents: {} }, "invalid_type", "contents"],
    ["contents is not empty", { contents: [] }, "empty_array", "contents"],
    ["parts is required", { contents: [{}] }, "missing_required_parameter", "contents[0].parts"],
    [
      "a text is required",
      withParts(file("image/png", "https://x.example/a")),
      "missing_required_parameter",
      "contents[0].parts",
    ],
    ["text is a string", withParts({ text: 5 }), "invalid_type", "contents[0].parts[0].text"],
    [
      "a part is one thing",
      withParts({ ...WORDS, ...file("image/png", "https://x.example/a") }),
      "invalid_value",
      "contents[0].parts[0]",
    ],
    ["a part is something", withParts({}), "invalid_value", "contents[0].parts[0]"],
    ["a part's fields are known", withParts({ file_data: {} }), "unknown_parameter", "contents[0].parts[0].file_data"],
    [
      "mimeType is required",
      withParts(WORDS, { fileData: { fileUri: "https://x.example" } }),
      "missing_required_parameter",
      "contents[0].parts[1].fileData.mimeType",
    ],
    [
      "mimeType is a picture's",
      withParts(WORDS, file("text/html", "https://x.example")),
      "invalid_value",
      "contents[0].parts[1].fileData.mimeType",
    ],
    [
      "fileData's fields are known",
      withParts(WORDS, { fileData: { constructor: 1, mimeType: "image/png", fileUri: "https://x" } }),
      "unknown_parameter",
      "contents[0].parts[1].fileData.constructor",
    ],
    [
      "fileUri is required",
      withParts(WORDS, { fileData: { mimeType: "image/png" } }),
      "missing_required_parameter",
      "contents[0].parts[1].fileData.fileUri",
    ],
    ["role is user or model", { contents: [{ role: "system", parts: [WORDS] }] }, "invalid_value", "contents[0].role"],
    ["unknown fields are named", { contents: [{ parts: [WORDS] }], prompt: "x" }, "unknown_parameter", "prompt"],
  ])("the sandbox refuses an image request: %s", async (_rule, body, code, param) => {
    const sandbox = await start();
    const refusal = await refusalOf(post(`${sandbox.url}/v1beta/models/sandbox-image:generateContent`, body));
    expect(refusal).toMatchObject({ status: 400, type: "invalid_request_error", code, param });
  });

  test.each<[string, unknown, string]>([
    [
      "responseModalities holds TEXT and IMAGE only",
      { responseModalities: ["AUDIO"] },
      "generationConfig.responseModalities[0]",
    ],
    ["responseModalities is an array", { responseModalities: "IMAGE" }, "generationConfig.responseModalities"],
    ["responseModalities is not empty", { responseModalities: [] }, "generationConfig.responseModalities"],
    [
      "aspectRatio is width:height",
      { imageConfig: { aspectRatio: "7x1" } },
      "generationConfig.imageConfig.aspectRatio",
    ],
    ["imageSize is upper case", { imageConfig: { imageSize: "1k" } }, "generationConfig.imageConfig.imageSize"],
    ["imageSize has a number", { imageConfig: { imageSize: "large" } }, "generationConfig.imageConfig.imageSize"],
    ["one candidate only", { candidateCount: 2 }, "generationConfig.candidateCount"],
  ])("the sandbox refuses an image request: %s", async (_rule, config, param) => {
    const sandbox = await start();
    expect(await refusalOf(draw(sandbox, [WORDS], config))).toMatchObject({ status: 400, param });
  });

  test("the sandbox accepts at most 16 references", async () => {
    const sandbox = await start();
    const part = inline(await picture("red"));
    expect((await draw(sandbox, [WORDS, ...Array.from({ length: 16 }, () => part)])).status).toBe(200);
    const refusal = await refusalOf(draw(sandbox, [WORDS, ...Array.from({ length: 17 }, () => part)]));
    expect(refusal).toMatchObject({ status: 400, code: "array_above_max_length" });
  });

  test("the sandbox accepts the settings that Google's client adds, and refuses a tool", async () => {
    const sandbox = await start();
    const config = {
      temperature: 1,
      topP: 1,
      topK: 40,
      seed: 1,
      candidateCount: 1,
      maxOutputTokens: 9,
      stopSequences: ["x"],
      presencePenalty: 0,
      frequencyPenalty: 0,
      responseMimeType: "text/plain",
      thinkingConfig: { thinkingBudget: 0 },
    };
    expect((await draw(sandbox, [WORDS], config)).status).toBe(200);
    const url = `${sandbox.url}/v1beta/models/sandbox-image:generateContent`;
    const body = { contents: [{ parts: [WORDS] }], tools: [{ googleSearch: {} }] };
    expect(await refusalOf(post(url, body))).toMatchObject({ status: 400, code: "unknown_parameter", param: "tools" });
  });

  test("the sandbox reads references in the spelling and the base64 of Google's Python client", async () => {
    const bytes = await picture("#fbff3f", 20, 10);
    const origin = await serveFiles({ "/a": bytes });
    const sandbox = await start({ trustedFileOrigins: [origin] });
    // The bytes are noise, so that their base64 contains both characters that differ between the two alphabets.
    const noise = await sharp(randomBytes(3000), { raw: { width: 100, height: 10, channels: 3 } })
      .png()
      .toBuffer();
    const data = noise.toString("base64").replaceAll("+", "-").replaceAll("/", "_");
    expect(data).toMatch(/-.*_|_.*-/);
    const parts = [
      WORDS,
      { fileData: { mime_type: "image/png", file_uri: `${origin}/a` } },
      { inlineData: { mime_type: "image/png", data } },
    ];
    const [text] = await partsOf(draw(sandbox, parts));
    expect(text?.text).toContain("2 reference pictures");
    const twice = { fileData: { mime_type: "image/png", mimeType: "image/png", file_uri: `${origin}/a` } };
    expect(await refusalOf(draw(sandbox, [WORDS, twice]))).toMatchObject({
      status: 400,
      code: "unknown_parameter",
      param: "contents[0].parts[1].fileData.mime_type",
    });
  });
});
