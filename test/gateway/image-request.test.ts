import { describe, expect, test } from "vitest";
import { GatewayError } from "../../src/gateway/errors.ts";
import { type ImageRequest, toImageJson } from "../../src/gateway/image-request.ts";

const base: ImageRequest = { model: "draw", prompt: "a cat" };
const reference = { mimeType: "image/png", fileUri: "https://example.org/a.png?signed=1" };

function problem(fields: Record<string, unknown>): string {
  try {
    toImageJson({ ...base, ...fields });
  } catch (error) {
    if (error instanceof GatewayError && error.kind === "rejected") return error.message;
    throw error;
  }
  return "none";
}

describe("toImageJson", () => {
  test("asks for text and image, and names nothing that was not asked for", () => {
    expect(JSON.parse(toImageJson(base))).toEqual({
      contents: [{ parts: [{ text: "a cat" }] }],
      generationConfig: { responseModalities: ["TEXT", "IMAGE"] },
    });
  });

  test("puts one fileData part behind the text for each reference, and ratio and size into imageConfig", () => {
    const request: ImageRequest = {
      ...base,
      references: [reference, { ...reference, mimeType: "image/webp" }],
      aspectRatio: "16:9",
      imageSize: "2K",
      responseModalities: ["IMAGE"],
    };
    expect(JSON.parse(toImageJson(request))).toEqual({
      contents: [
        {
          parts: [
            { text: "a cat" },
            { fileData: { mimeType: "image/png", fileUri: reference.fileUri } },
            { fileData: { mimeType: "image/webp", fileUri: reference.fileUri } },
          ],
        },
      ],
      generationConfig: { responseModalities: ["IMAGE"], imageConfig: { aspectRatio: "16:9", imageSize: "2K" } },
    });
  });

  const cases: Array<[string, Record<string, unknown>, string]> = [
    ["model is required", { model: undefined }, "model is missing"],
    ["text is required", { prompt: "  " }, "prompt must not be empty"],
    [
      "mimeType is an image's",
      { references: [{ ...reference, mimeType: "text/html" }] },
      "references[0].mimeType must be",
    ],
    ["fileUri is a URL", { references: [{ ...reference, fileUri: "/tmp/a.png" }] }, "references[0].fileUri must be an"],
    ["responseModalities contain IMAGE", { responseModalities: ["TEXT"] }, "responseModalities must contain IMAGE"],
    ["aspectRatio is width:height", { aspectRatio: "wide" }, "aspectRatio must be width:height"],
    ["imageSize is upper case", { imageSize: "2k" }, "imageSize must be a number and an upper-case K"],
    ["no other field", { seed: 7 }, 'it has "seed", which the interface does not list'],
  ];
  for (const [rule, fields, words] of cases) {
    test(`refuses what breaks a rule: ${rule}`, () => expect(problem(fields)).toContain(words));
  }

  test("names all problems at once", () => {
    expect(problem({ aspectRatio: "x", imageSize: "y" })).toMatch(/aspectRatio.*imageSize/);
  });
});
