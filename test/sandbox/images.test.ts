import sharp from "sharp";
import { describe, expect, test } from "vitest";
import type { Sandbox } from "../../src/sandbox/server.ts";
import { picture, post, refusalOf, serveFiles, start } from "./sandbox.ts";

interface Part {
  text?: string;
  inlineData?: { mimeType: string; data: string };
  inline_data?: { mime_type: string; data: string };
}

const WORDS = { text: "a red house" };

function draw(
  sandbox: Sandbox,
  parts: unknown[] = [WORDS],
  generationConfig?: unknown,
  model = "sandbox-image",
): Promise<Response> {
  return post(`${sandbox.url}/v1beta/models/${model}:generateContent`, { contents: [{ parts }], generationConfig });
}

async function partsOf(response: Promise<Response>): Promise<Part[]> {
  const answer = await response;
  expect(answer.status).toBe(200);
  const body = (await answer.json()) as { candidates: [{ content: { parts: Part[] } }] };
  return body.candidates[0].content.parts;
}

async function pngOf(response: Promise<Response>): Promise<Buffer> {
  const part = (await partsOf(response)).find(({ inlineData }) => inlineData !== undefined);
  return Buffer.from(part?.inlineData?.data ?? "", "base64");
}

const file = (mimeType: string, fileUri: string) => ({ fileData: { mimeType, fileUri } });
const inline = (bytes: Buffer, mimeType = "image/png") => ({
  inlineData: { mimeType, data: bytes.toString("base64") },
});

function near(color: number[], wanted: number[]): boolean {
  return color.every((value, index) => Math.abs(value - (wanted[index] ?? 0)) < 12);
}

describe("image generation", () => {
  test("text to image: a PNG as base64 in inlineData.data, 1:1 and 1K by default, with a text", async () => {
    const sandbox = await start();
    const response = await draw(sandbox);
    expect(response.headers.get("content-type")).toMatch(/^application\/json/);
    const body = (await response.json()) as { candidates: [{ content: { parts: Part[] } }]; modelVersion: string };
    const [text, image] = body.candidates[0].content.parts;
    expect([body.modelVersion, text?.text, image?.inlineData?.mimeType]).toEqual([
      "sandbox-image",
      "Here is a picture of 1024 × 1024 pixels, drawn from your words.",
      "image/png",
    ]);
    const png = Buffer.from(image?.inlineData?.data ?? "", "base64");
    expect(await sharp(png).metadata()).toMatchObject({ format: "png", width: 1024, height: 1024 });
  });

  test("the same request is drawn the same, another prompt otherwise", async () => {
    const sandbox = await start();
    const [a, b, c] = await Promise.all(
      [draw(sandbox), draw(sandbox), draw(sandbox, [{ text: "a blue boat" }])].map(pngOf),
    );
    expect(a?.equals(b ?? Buffer.alloc(0))).toBe(true);
    expect(a?.equals(c ?? Buffer.alloc(0))).toBe(false);
  });

  test("responseModalities decides what comes: both, the picture alone, the words alone", async () => {
    const sandbox = await start();
    const kinds = async (responseModalities: unknown) =>
      (await partsOf(draw(sandbox, [WORDS], { responseModalities }))).map((part) => Object.keys(part)[0]);
    expect(await kinds(undefined)).toEqual(["text", "inlineData"]);
    expect(await kinds(["TEXT", "IMAGE"])).toEqual(["text", "inlineData"]);
    expect(await kinds(["IMAGE"])).toEqual(["inlineData"]);
    expect(await kinds(["TEXT"])).toEqual(["text"]);
  });

  test("image to image: references by fileData and inlineData are in the picture, in their order", async () => {
    const origin = await serveFiles({ "/a": await picture("#ff0000", 20, 10) });
    const sandbox = await start({ trustedFileOrigins: [origin] });
    const parts = [
      WORDS,
      file("image/png", `${origin}/a`),
      inline(await picture("#0000ff", 10, 20, "jpeg"), "image/jpeg"),
    ];
    const png = await pngOf(draw(sandbox, parts));
    const { data, info } = await sharp(png).raw().toBuffer({ resolveWithObject: true });
    const at = (x: number, y: number) => [...data.subarray((y * info.width + x) * info.channels).subarray(0, 3)];
    const y = Math.round(info.height * 0.72);
    expect(near(at(Math.round(info.width * 0.2), y), [255, 0, 0])).toBe(true);
    expect(near(at(Math.round(info.width * 0.6), y), [0, 0, 255])).toBe(true);
  });

  test("answers under /v1 too, as Google's client asks", async () => {
    const sandbox = await start();
    const body = {
      contents: [{ role: "user", parts: [WORDS] }],
      systemInstruction: { role: "user", parts: [{ text: "Be bold." }] },
      safetySettings: [],
    };
    expect((await post(`${sandbox.url}/v1/models/sandbox-image:generateContent`, body)).status).toBe(200);
  });

  test.each<[string, unknown, string, string]>([
    ["contents is required", {}, "missing_required_parameter", "contents"],
    ["contents is an array", { contents: {} }, "invalid_type", "contents"],
    ["contents is not empty", { contents: [] }, "empty_array", "contents"],
    ["parts is required", { contents: [{}] }, "missing_required_parameter", "contents[0].parts"],
    [
      "a text is required",
      { contents: [{ parts: [file("image/png", "https://x.example/a")] }] },
      "missing_required_parameter",
      "contents[0].parts",
    ],
    ["text is a string", { contents: [{ parts: [{ text: 5 }] }] }, "invalid_type", "contents[0].parts[0].text"],
    [
      "a part is one thing",
      { contents: [{ parts: [{ ...WORDS, ...file("image/png", "https://x.example/a") }] }] },
      "invalid_value",
      "contents[0].parts[0]",
    ],
    ["a part is something", { contents: [{ parts: [{}] }] }, "invalid_value", "contents[0].parts[0]"],
    [
      "a part's fields are known",
      { contents: [{ parts: [{ file_data: {} }] }] },
      "unknown_parameter",
      "contents[0].parts[0].file_data",
    ],
    [
      "mimeType is required",
      { contents: [{ parts: [WORDS, { fileData: { fileUri: "https://x.example" } }] }] },
      "missing_required_parameter",
      "contents[0].parts[1].fileData.mimeType",
    ],
    [
      "mimeType is a picture's",
      { contents: [{ parts: [WORDS, file("text/html", "https://x.example")] }] },
      "invalid_value",
      "contents[0].parts[1].fileData.mimeType",
    ],
    [
      "fileUri is required",
      { contents: [{ parts: [WORDS, { fileData: { mimeType: "image/png" } }] }] },
      "missing_required_parameter",
      "contents[0].parts[1].fileData.fileUri",
    ],
    ["role is user or model", { contents: [{ role: "system", parts: [WORDS] }] }, "invalid_value", "contents[0].role"],
    ["unknown fields are named", { contents: [{ parts: [WORDS] }], prompt: "x" }, "unknown_parameter", "prompt"],
  ])("%s", async (_rule, body, code, param) => {
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
    ["aspectRatio is a known one", { imageConfig: { aspectRatio: "7:1" } }, "generationConfig.imageConfig.aspectRatio"],
    ["imageSize is upper case", { imageConfig: { imageSize: "1k" } }, "generationConfig.imageConfig.imageSize"],
    ["imageSize is a known one", { imageConfig: { imageSize: "8K" } }, "generationConfig.imageConfig.imageSize"],
    ["one candidate only", { candidateCount: 2 }, "generationConfig.candidateCount"],
  ])("%s", async (_rule, config, param) => {
    const sandbox = await start();
    expect(await refusalOf(draw(sandbox, [WORDS], config))).toMatchObject({ status: 400, param });
  });

  test("fileUri must be reachable from the public network, and mimeType must match the bytes", async () => {
    const origin = await serveFiles({ "/a.jpg": await picture("red"), "/login": Buffer.from("<html>sign in</html>") });
    const sandbox = await start({ trustedFileOrigins: [origin] });
    const refused = (part: unknown) => refusalOf(draw(sandbox, [WORDS, part]));
    const place = "contents[0].parts[1].fileData";
    expect(await refused(file("image/png", "http://127.0.0.1:9/a"))).toMatchObject({
      code: "file_not_reachable",
      param: `${place}.fileUri`,
    });
    expect(await refused(file("image/png", `${origin}/gone`))).toMatchObject({
      code: "file_not_reachable",
      param: `${place}.fileUri`,
    });
    expect(await refused(file("image/png", `${origin}/login`))).toMatchObject({
      code: "invalid_image",
      param: `${place}.fileUri`,
    });
    // The name says JPEG, the bytes are PNG.
    expect(await refused(file("image/jpeg", `${origin}/a.jpg`))).toMatchObject({
      code: "mime_type_mismatch",
      param: `${place}.mimeType`,
    });
    expect((await draw(sandbox, [WORDS, file("image/png", `${origin}/a.jpg`)])).status).toBe(200);
    const wrong = inline(await picture("red"), "image/webp");
    expect(await refused(wrong)).toMatchObject({
      code: "mime_type_mismatch",
      param: "contents[0].parts[1].inlineData.mimeType",
    });
  });

  test("at most 16 references are taken", async () => {
    const sandbox = await start();
    const part = inline(await picture("red"));
    expect((await draw(sandbox, [WORDS, ...Array.from({ length: 16 }, () => part)])).status).toBe(200);
    const refusal = await refusalOf(draw(sandbox, [WORDS, ...Array.from({ length: 17 }, () => part)]));
    expect(refusal).toMatchObject({ status: 400, code: "array_above_max_length" });
  });

  test("rate limit: 429 in the interface's form", async () => {
    const sandbox = await start({ requestsPerMinute: 1 });
    await draw(sandbox);
    expect(await refusalOf(draw(sandbox))).toMatchObject({
      status: 429,
      code: "rate_limit_exceeded",
      message: "rate limit exceeded for model sandbox-image",
    });
  });

  test("faults: the other spelling, no picture, no real picture, errors and cuts, also in the prompt's words", async () => {
    const sandbox = await start();
    const withFault = (fault: string) => draw(sandbox, [WORDS], undefined, `sandbox-image:${fault}`);
    const [, snake] = await partsOf(withFault("snake-case"));
    expect(snake).toMatchObject({ inline_data: { mime_type: "image/png", data: expect.any(String) } });
    expect((await partsOf(withFault("no-image"))).map((part) => Object.keys(part))).toEqual([["text"]]);
    expect((await pngOf(withFault("not-an-image"))).toString()).toMatch(/^<!doctype/);
    expect((await withFault("503")).status).toBe(503);
    await expect((await withFault("cut")).json()).rejects.toThrow(/terminated/);
    expect((await draw(sandbox, [{ text: "sandbox fault: 500 a star" }])).status).toBe(500);
  });
});
