import { describe, expect, test } from "vitest";
import { GatewayError } from "../../src/gateway/errors.ts";
import { describePictureFailure, PictureError } from "../../src/imagine/failure.ts";

const FILTERED = /^The AI service's safety filter blocked this image\. Describe it differently\.$/;
const describeFailure = (error: unknown) => describePictureFailure(error, "painter", 0);

describe("the reason for a missing image", () => {
  test.each([
    [
      new GatewayError("rejected", "The model created no image (MAX_TOKENS)", { type: "no_picture", quote: "." }),
      /^The model created no image\. Rephrase/,
      true,
    ],
    [new GatewayError("rejected", "no", { status: 400, code: "content_policy_violation" }), FILTERED, true],
    [
      new GatewayError("rejected", "no", { status: 404, type: "no_way" }),
      /can't create images with the model `painter`/,
      false,
    ],
    [new GatewayError("malformed", "no"), /something that is not an image/, true],
    [
      new GatewayError("unauthorized", "no", { status: 401 }),
      /`GATEWAY_API_KEY` and `GATEWAY_IMAGE_KEY_HEADER`/,
      false,
    ],
    [new GatewayError("unauthorized", "no", { status: 403 }), /use the model `painter`/, false],
    [new GatewayError("rate-limited", "no", { retryAfterMs: 20_000 }), /Press Retry in 20 seconds/, true],
    [new GatewayError("overloaded", "no"), /^The AI service failed\. Press Retry in a minute\./, true],
    [new GatewayError("unreachable", "no"), /^I can't reach the AI service/, true],
    [new GatewayError("interrupted", "no"), /broke off before the image was finished/, true],
    [new GatewayError("rejected", "no", { status: 404, reason: "unknown-model" }), /has no model `painter`/, false],
    [new GatewayError("rejected", "no", { status: 413 }), /more than the model accepts/, false],
    [new GatewayError("rejected", "no", { status: 400 }), /refused this request \(400\)\. My log says why/, false],
    [new DOMException("late", "TimeoutError"), /took longer than allowed/, true],
    [new PictureError("`a.tiff` cannot be used."), /^`a\.tiff` cannot be used\.$/, true],
    [new Error("secret"), /went wrong on my side.*create it again/, true],
  ])("the bot explains a failed image in plain words: %s", (error, words, canRetry) => {
    const failure = describeFailure(error);
    expect(failure.reason).toMatch(words);
    expect(failure.reason).not.toMatch(/secret|the answer|^_|_$/);
    expect(failure.canRetry).toBe(canRetry);
  });
});
