import sharp from "sharp";
import { beforeAll, describe, expect, test } from "vitest";
import { parseImage } from "../../src/gateway/image-answer.ts";
import { createSafeText } from "../../src/gateway/safe-text.ts";
import { failureOf } from "../support/gateway-client.ts";

const MAX_BYTES = 100_000;
const safe = createSafeText([]);
const parse = (value: unknown) => parseImage(JSON.stringify(value), MAX_BYTES, safe);
let red: string;
let blue: string;

async function draw(background: string): Promise<string> {
  const bytes = await sharp({ create: { width: 2, height: 2, channels: 3, background } })
    .png()
    .toBuffer();
  return bytes.toString("base64");
}

beforeAll(async () => {
  [red, blue] = await Promise.all([draw("red"), draw("blue")]);
});

describe("the picture", () => {
  test("is found as inlineData and as inline_data, wherever it stands", async () => {
    const shapes = [
      { candidates: [{ content: { parts: [{ text: "here" }, { inlineData: { data: red } }] } }] },
      { candidates: [{ content: { parts: [{ inline_data: { mime_type: "image/png", data: red } }] } }] },
      { inlineData: { data: red } },
      { a: [[[{ b: { inline_data: { data: red } } }]]] },
      [{ candidates: [] }, { inlineData: { data: red } }],
    ];
    for (const shape of shapes) expect(Buffer.from((await parse(shape)).bytes).toString("base64")).toBe(red);
  });

  test("is the first one as the answer is written", async () => {
    const first = { deep: { er: [{ inlineData: { data: red } }] }, inline_data: { data: blue } };
    expect(Buffer.from((await parse(first)).bytes).toString("base64")).toBe(red);
    const parts = [{ inline_data: { data: blue } }, { inlineData: { data: red } }];
    expect(Buffer.from((await parse({ parts })).bytes).toString("base64")).toBe(blue);
  });

  test("is the first one that holds data", async () => {
    for (const empty of ["", " ", "data:image/png;base64,", null]) {
      const parts = [{ inlineData: { data: empty } }, { inline_data: { data: red } }, { inlineData: { data: blue } }];
      expect(Buffer.from((await parse({ parts })).bytes).toString("base64")).toBe(red);
    }
  });

  test("is one of the model's thoughts where there is no other", async () => {
    const thought = { thought: true, content: [{ text: "hmm" }, { inlineData: { data: blue } }] };
    const [alone, both] = await Promise.all([
      parse({ parts: [thought, { text: "Here.", inlineData: { data: "" } }] }),
      parse({ parts: [thought, { inlineData: { data: red } }] }),
    ]);
    expect([Buffer.from(alone.bytes).toString("base64"), alone.text]).toEqual([blue, "Here."]);
    expect(Buffer.from(both.bytes).toString("base64")).toBe(red);
  });

  test("comes with the text beside it, without the model's thoughts", async () => {
    const parts = [{ text: "hmm", thought: true }, { text: "Here" }, { inlineData: { data: red } }, { text: "it is." }];
    expect((await parse({ candidates: [{ content: { parts } }] })).text).toBe("Here\nit is.");
  });

  test.each([
    [{ usageMetadata: { promptTokenCount: 7, candidatesTokenCount: 258 } }, { promptTokens: 7, completionTokens: 258 }],
    [{ usage: { input_tokens: 7, output_tokens: 258 } }, { promptTokens: 7, completionTokens: 258 }],
    [{ usage: { prompt_tokens: 7 } }, { promptTokens: 7, completionTokens: 0 }],
    [{ usage: { total: "many" } }, undefined],
    [{}, undefined],
  ])("comes with what it cost, where the gateway tells: %j", async (told, usage) => {
    expect((await parse({ inlineData: { data: red }, ...told })).usage).toEqual(usage);
  });

  test("is found however deep it stands", async () => {
    const depth = 5_000;
    const text = `${'{"a":'.repeat(depth)}${JSON.stringify({ inlineData: { data: red } })}${"}".repeat(depth)}`;
    expect((await parseImage(text, MAX_BYTES, safe)).mimeType).toBe("image/png");
  });
});

describe("an answer without a usable picture", () => {
  test("is malformed when it is empty, no JSON, or holds something else", async () => {
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

  test("is malformed when the picture is too large", async () => {
    const data = Buffer.concat([Buffer.from(red, "base64"), Buffer.alloc(MAX_BYTES)]).toString("base64");
    expect(await failureOf(parse({ inlineData: { data } }))).toMatchObject({
      kind: "malformed",
      message: expect.stringContaining(`${MAX_BYTES} bytes`),
    });
  });

  test("is rejected, with the reason, when the model declines", async () => {
    const words = { candidates: [{ content: { parts: [{ text: "I cannot draw that." }] }, finishReason: "STOP" }] };
    expect(await failureOf(parse(words))).toMatchObject({
      kind: "rejected",
      message: "The model drew no picture. It said: I cannot draw that.",
    });
    expect(await failureOf(parse({ promptFeedback: { blockReason: "SAFETY" } }))).toMatchObject({
      kind: "rejected",
      code: "SAFETY",
      message: "The model drew no picture (SAFETY).",
    });
  });

  test("says the words of an error object", async () => {
    expect(await failureOf(parse({ error: { message: "no capacity" } }))).toMatchObject({
      kind: "interrupted",
      message: expect.stringContaining("no capacity"),
    });
  });
});
