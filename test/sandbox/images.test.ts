import sharp from "sharp";
import { describe, expect, test } from "vitest";
import {
  draw,
  file,
  inline,
  type Part,
  partsOf,
  picture,
  pngOf,
  post,
  refusalOf,
  serveFiles,
  start,
  WORDS,
} from "./sandbox.ts";

function near(color: number[], wanted: number[]): boolean {
  return color.every((value, index) => Math.abs(value - (wanted[index] ?? 0)) < 12);
}

describe("the sandbox's image generation", () => {
  test("a request with text only returns a PNG as base64 in inlineData.data, 1:1 and 1K by default, with a text", async () => {
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

  test.each([
    [{ aspectRatio: "7:3", imageSize: "1K" }, 1554, 666, " I do not have the ratio 7:3: this is the nearest."],
    [{ aspectRatio: "1:9" }, 765, 1360, " I do not have the ratio 1:9: this is the nearest."],
    [
      { aspectRatio: "11:10", imageSize: "8K" },
      4096,
      4096,
      " I do not have the ratio 11:10 and the size 8K: this is the nearest.",
    ],
    [{ aspectRatio: "1:1", imageSize: "2K" }, 2048, 2048, ""],
  ])(
    "the sandbox creates an image of the nearest ratio or size that it has, and says so: %j",
    async (asked, w, h, said) => {
      const parts = await partsOf(draw(await start(), [WORDS], { imageConfig: asked }));
      expect(parts[0]?.text).toBe(`Here is a picture of ${w} × ${h} pixels, drawn from your words.${said}`);
      const png = Buffer.from(parts[1]?.inlineData?.data ?? "", "base64");
      expect(await sharp(png).metadata()).toMatchObject({ width: w, height: h });
    },
  );

  test("each request gets a different image", async () => {
    const sandbox = await start();
    const [one, other] = [await pngOf(draw(sandbox)), await pngOf(draw(sandbox))];
    expect(one.equals(other)).toBe(false);
  });

  test("the field responseModalities selects both, the image alone, or the words alone", async () => {
    const sandbox = await start();
    const kinds = async (responseModalities: unknown) =>
      (await partsOf(draw(sandbox, [WORDS], { responseModalities }))).map((part) => Object.keys(part)[0]);
    expect(await kinds(undefined)).toEqual(["text", "inlineData"]);
    expect(await kinds(["TEXT", "IMAGE"])).toEqual(["text", "inlineData"]);
    expect(await kinds(["IMAGE"])).toEqual(["inlineData"]);
    expect(await kinds(["TEXT"])).toEqual(["text"]);
  });

  test("a request with references shows those in fileData and inlineData, in their order", async () => {
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

  test("the sandbox answers a request for a stream with one event, or without alt=sse with a list of one response", async () => {
    const sandbox = await start();
    // The test compares only the words, because each image is different.
    const body = { contents: [{ parts: [WORDS] }], generationConfig: { responseModalities: ["TEXT"] } };
    for (const version of ["v1", "v1beta"]) {
      const url = `${sandbox.url}/${version}/models/sandbox-image:streamGenerateContent`;
      const stream = await post(`${url}?alt=sse`, body);
      expect(stream.headers.get("content-type")).toMatch(/^text\/event-stream/);
      const [, json = ""] = /^data: ([^\n]+)\n\n$/.exec(await stream.text()) ?? [];
      const list = await post(url, body);
      expect(list.headers.get("content-type")).toMatch(/^application\/json/);
      const whole = await (await post(url.replace("streamG", "g"), body)).json();
      const answer = { ...(whole as object), responseId: expect.any(String) };
      expect([JSON.parse(json), await list.json()]).toEqual([answer, [answer]]);
    }
    const url = `${sandbox.url}/v1beta/models/gone:streamGenerateContent?alt=sse`;
    expect(await refusalOf(post(url, body))).toMatchObject({ status: 404, code: "model_not_found" });
  });

  test("the sandbox requires a fileUri that is reachable from the public network, and a mimeType that matches the bytes", async () => {
    const origin = await serveFiles({ "/a.jpg": await picture("red"), "/login": Buffer.from("<html>sign in</html>") });
    const sandbox = await start({ trustedFileOrigins: [origin] });
    const refused = (part: unknown) => refusalOf(draw(sandbox, [WORDS, part]));
    const place = "contents[0].parts[1].fileData";
    const wrong = [
      [file("image/png", "http://127.0.0.1:9/a"), "file_not_reachable", `${place}.fileUri`],
      [file("image/png", `${origin}/gone`), "file_not_reachable", `${place}.fileUri`],
      [file("image/png", `${origin}/login`), "invalid_image", `${place}.fileUri`],
      // The name says JPEG, but the bytes are PNG.
      [file("image/jpeg", `${origin}/a.jpg`), "mime_type_mismatch", `${place}.mimeType`],
      [inline(await picture("red"), "image/webp"), "mime_type_mismatch", "contents[0].parts[1].inlineData.mimeType"],
    ] as const;
    for (const [part, code, param] of wrong) expect(await refused(part)).toMatchObject({ code, param });
    expect((await draw(sandbox, [WORDS, file("image/png", `${origin}/a.jpg`)])).status).toBe(200);
  });

  test("the sandbox answers with 429 in the interface's form at its rate limit", async () => {
    const sandbox = await start({ requestsPerMinute: 1 });
    await draw(sandbox);
    expect(await refusalOf(draw(sandbox))).toMatchObject({
      status: 429,
      code: "rate_limit_exceeded",
      message: "rate limit exceeded for model sandbox-image",
    });
  });

  test("the faults of images are the other spelling, no image, errors and broken connections, also in the prompt's words", async () => {
    const sandbox = await start();
    const withFault = (fault: string) => draw(sandbox, [WORDS], undefined, `sandbox-image:${fault}`);
    const [, snake] = await partsOf(withFault("snake-case"));
    expect(snake).toMatchObject({ inline_data: { mime_type: "image/png", data: expect.any(String) } });
    expect((await partsOf(withFault("no-image"))).map((part) => Object.keys(part))).toEqual([["text"]]);
    expect((await withFault("503")).status).toBe(503);
    await expect((await withFault("cut")).json()).rejects.toThrow(/terminated/);
    expect((await draw(sandbox, [{ text: "sandbox fault: 500 a star" }])).status).toBe(500);
  });
});
