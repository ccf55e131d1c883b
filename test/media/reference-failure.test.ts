import { describe, expect, test } from "vitest";
import { linked } from "../../lab/support/picture-turn.ts";
import { GatewayError } from "../../src/gateway/errors.ts";
import { NO_PICTURE } from "../../src/gateway/image-answer.ts";
import { describeReferenceFailure } from "../../src/media/reference.ts";
import type { AttachmentRef } from "../../src/port/events.ts";
import { picture, start } from "../sandbox/sandbox.ts";
import { serveAnswers } from "../support/file-server.ts";
import { connect } from "../support/gateway-client.ts";

const never = new AbortController().signal;
const toRef = (name: string): AttachmentRef => ({ platform: "slack", id: name, name, sizeBytes: 1 });
const refs = ["first.png", "second.png"].map(toRef);
const UNREACHABLE =
  "I can't use `second.png` as a reference: it could not be fetched by the AI service, which must reach it over the internet.";
const REFUSED =
  "I can't use `second.png` as a reference: it was rejected by the AI service as damaged or unsupported; send it as PNG or JPEG.";

/** The sandbox's error for a request with a valid first reference and this second one. */
async function failWith(second: (origin: string) => { fileUri: string; mimeType: string }): Promise<unknown> {
  const png = await picture("red");
  const { origin } = await serveAnswers({
    "/good.png": (response) => response.end(png),
    "/broken.png": (response) => response.end(png.subarray(0, 40)),
  });
  const sandbox = await start({ trustedFileOrigins: [origin] });
  const gateway = connect(sandbox.url, { apiKey: "sk-sandbox-all" });
  const references = linked({ fileUri: `${origin}/good.png`, mimeType: "image/png" }, second(origin));
  return await gateway.generateImage({ model: "sandbox-image", prompt: "a cat", references }, never).then(
    () => undefined,
    (error: unknown) => error,
  );
}

describe("describeReferenceFailure", () => {
  test.each([
    ["is not there", (origin: string) => ({ fileUri: `${origin}/gone.png`, mimeType: "image/png" }), UNREACHABLE],
    ["is private", () => ({ fileUri: "http://10.0.0.1/a.png?hm=mark", mimeType: "image/png" }), UNREACHABLE],
    ["is of another type", (origin: string) => ({ fileUri: `${origin}/good.png`, mimeType: "image/webp" }), REFUSED],
    ["is damaged", (origin: string) => ({ fileUri: `${origin}/broken.png`, mimeType: "image/png" }), REFUSED],
  ])("the description names the image that %s", async (_, second, sentence) => {
    expect(describeReferenceFailure(await failWith(second), refs)).toBe(sentence);
  });

  test.each([
    ["Unable to fetch file_uri https://a.example/x", UNREACHABLE],
    ["fileData: unsupported MIME type: image/heic", REFUSED],
  ])("the description recognises failures of other gateways, which name no part: %s", (words, sentence) => {
    const error = new GatewayError("rejected", `The gateway refused the request (400). It said: ${words}`, {
      status: 400,
    });
    expect(describeReferenceFailure(error, [toRef("second.png")])).toBe(sentence);
    expect(describeReferenceFailure(error, refs)).toMatch(/^I can't use one of the 2 images as a reference: it /);
  });

  test.each([
    "Too many images: this model takes 1.",
    "contents has 2 reference pictures; at most 1 are taken.",
    "Request contains more than 1 images.",
    "Invalid 'image': array too long. Expected an array with maximum length 1.",
    "You can provide up to 1 input images.",
  ])("the description says that there are too many images: %s", (words) => {
    const error = new GatewayError("rejected", `It said: ${words}`, { status: 400 });
    const sentence = "This model does not accept 2 images at once. Attach fewer.";
    expect(describeReferenceFailure(error, refs)).toBe(sentence);
  });

  test.each([
    ["the prompt", new GatewayError("rejected", "It said: blocked by a filter", { status: 400 })],
    ["another field of a part", new GatewayError("rejected", "empty", { param: "contents[0].parts[1].text" })],
    [
      "the model, in words about a picture",
      new GatewayError("rejected", "I cannot fetch that reference image.", { type: NO_PICTURE }),
    ],
    ["the key", new GatewayError("unauthorized", "It said: no access to fileData", { status: 403 })],
    ["the rate", new GatewayError("rate-limited", "It said: too many fileData", { status: 429 })],
    ["something that is no gateway's", new Error("fileUri")],
  ])("the description does not blame a reference for a failure about %s", (_, error) => {
    expect(describeReferenceFailure(error, refs)).toBeUndefined();
  });

  test("the description blames no reference for a failure of a request without references", () => {
    expect(describeReferenceFailure(new GatewayError("rejected", "fileData is bad"), [])).toBeUndefined();
  });
});
