import { describe, expect, test } from "vitest";
import { GatewayError } from "../../src/gateway/errors.ts";
import { describePictureFailure, PictureError } from "../../src/imagine/failure.ts";

const FILTERED = /^The AI service's safety filter refused this picture\. Describe it differently\.$/;
const describeFailure = (error: unknown) => describePictureFailure(error, "painter", 0);

describe("why a picture is not there", () => {
  test.each([
    [
      new GatewayError("rejected", "The model drew no picture (MAX_TOKENS)", { type: "no_picture", quote: "." }),
      /^The model drew no picture\. Put it/,
      true,
    ],
    [new GatewayError("rejected", "no", { status: 400, code: "content_policy_violation" }), FILTERED, true],
    [
      new GatewayError("rejected", "no", { status: 404, type: "no_way" }),
      /does not draw with the model `painter`/,
      false,
    ],
    [new GatewayError("malformed", "no"), /there is no picture in what the AI service sent/, true],
    [
      new GatewayError("unauthorized", "no", { status: 401 }),
      /`GATEWAY_API_KEY` and `GATEWAY_IMAGE_KEY_HEADER`/,
      false,
    ],
    [new GatewayError("unauthorized", "no", { status: 403 }), /use the model `painter`/, false],
    [new GatewayError("rate-limited", "no", { retryAfterMs: 20_000 }), /Press Retry in 20 seconds/, true],
    [new GatewayError("overloaded", "no"), /^The AI service failed\. Press Retry in a minute\./, true],
    [new GatewayError("unreachable", "no"), /^I can't reach the AI service/, true],
    [new GatewayError("interrupted", "no"), /broke off while it drew/, true],
    [new GatewayError("rejected", "no", { status: 404, reason: "unknown-model" }), /has no model `painter`/, false],
    [new GatewayError("rejected", "no", { status: 413 }), /^Too large: /, false],
    [
      new GatewayError("rejected", "no", { status: 400 }),
      /refused this request \(400\)\. The bot's log says why/,
      false,
    ],
    [new DOMException("late", "TimeoutError"), /drawing took longer than is allowed/, true],
    [new PictureError("`a.tiff` cannot be used."), /^`a\.tiff` cannot be used\.$/, true],
    [new Error("secret"), /went wrong inside the bot.*draw it again/, true],
  ])("is said in plain words: %s", (error, words, canRetry) => {
    const failure = describeFailure(error);
    expect(failure.reason).toMatch(words);
    expect(failure.reason).not.toMatch(/secret|the answer|^_|_$/);
    expect(failure.canRetry).toBe(canRetry);
  });
});
