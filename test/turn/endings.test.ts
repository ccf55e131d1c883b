import { describe, expect, test } from "vitest";
import { GatewayError, type GatewayErrorKind, type GatewayErrorOptions } from "../../src/gateway/errors.ts";
import type { Cause } from "../../src/reply/reply.ts";
import { describeEnding } from "../../src/turn/endings.ts";

const context = { model: "maker/model_one", now: Date.UTC(2026, 10, 20, 13, 50, 30) };
const failed = (kind: GatewayErrorKind, options: GatewayErrorOptions = {}): Cause => ({
  error: new GatewayError(kind, "sk-canary from https://gateway.internal/v1", options),
});

const ENDINGS: ReadonlyArray<[string, Cause, string, boolean, RegExp]> = [
  ["length", { finish: "length" }, "length", true, /greatest length/],
  ["max_tokens", { finish: "MAX_TOKENS" }, "length", true, /greatest length/],
  ["content filter", { finish: "content_filter" }, "filtered", true, /content filter/],
  ["endless tools", { finish: "tool_limit" }, "interrupted", true, /using tools/],
  ["stopped by a person", { error: "stopped" }, "stopped", true, /^_Stopped: this answer was ended on request/],
  ["shutdown", { error: "shutdown" }, "shutdown", true, /shut down/],
  ["a timeout", { error: new DOMException("", "TimeoutError") }, "interrupted", true, /longer than is allowed/],
  ["an abort without a reason", { error: AbortSignal.abort().reason }, "interrupted", true, /cut short/],
  ["an unknown error", { error: new Error("ENOENT /etc/palaver sk-canary") }, "failed", true, /^_Failed: /],
  ["wrong key", failed("unauthorized", { status: 401 }), "failed", false, /operator should check `GATEWAY_API_KEY`/],
  [
    "model not permitted",
    failed("unauthorized", { status: 403 }),
    "failed",
    false,
    /`maker\/model_one`.*permissions of the key/,
  ],
  [
    "model not permitted by code",
    failed("unauthorized", { status: 401, code: "model_not_found" }),
    "failed",
    false,
    /permissions/,
  ],
  [
    "model unknown",
    failed("rejected", { status: 404 }),
    "failed",
    false,
    /no model `maker\/model_one` for this.*`GATEWAY_BASE_URL`/,
  ],
  ["model unknown by code", failed("rejected", { status: 400, code: "model_not_found" }), "failed", false, /no model/],
  [
    "eyes or tools missing",
    failed("rejected", { status: 400, code: "unsupported_feature" }),
    "failed",
    false,
    /pictures or the tools/,
  ],
  ["filtered by the platform", { error: "filtered" }, "filtered", true, /filter of this place.*in other words/],
  ["refused by the platform", { error: "refused" }, "interrupted", true, /channel takes no more/],
  [
    "context too long",
    failed("rejected", { status: 400, code: "context_length_exceeded" }),
    "failed",
    false,
    /^_Too long: /,
  ],
  [
    "no credit",
    failed("rejected", { status: 402 }),
    "failed",
    false,
    /^_Refused: this bot's account .* no credit left/,
  ],
  ["request too large", failed("rejected", { status: 413 }), "failed", false, /^_Too long: /],
  [
    "filtered request",
    failed("rejected", { status: 400, code: "content_policy_violation" }),
    "filtered",
    true,
    /content filter/,
  ],
  ["refused request", failed("rejected", { status: 400 }), "failed", false, /does not accept this request/],
  [
    "rate limit",
    failed("rate-limited", { status: 429 }),
    "failed",
    true,
    /`maker\/model_one`.*Press Retry in a minute/,
  ],
  ["overloaded", failed("overloaded", { status: 503 }), "failed", true, /^_Overloaded: .*in a minute/],
  ["unreachable", failed("unreachable"), "failed", true, /no connection.*`GATEWAY_BASE_URL`/],
  ["stalled", failed("stalled"), "interrupted", true, /stopped sending/],
  [
    "broken off",
    failed("interrupted"),
    "interrupted",
    true,
    /^_Interrupted: the model's answer broke off\. Press Retry to ask again\._$/,
  ],
  ["filter in the stream", failed("interrupted", { code: "content_filter" }), "filtered", true, /content filter/],
  ["malformed", failed("malformed"), "interrupted", true, /not an answer/],
];

describe("describeEnding", () => {
  test("says who stopped it", () => {
    const noteOf = (stoppedBy: string) => describeEnding({ error: "stopped" }, { ...context, stoppedBy }).note;
    expect(noteOf("you")).toBe("_You stopped this answer._");
    expect(noteOf("`Ben`")).toBe("_Stopped: `Ben` ended this answer._");
  });

  for (const finish of ["stop", "end_turn", "tool_calls", "something_else"]) {
    test(`says nothing under an answer that ended with ${finish}`, () => {
      expect(describeEnding({ finish }, context)).toEqual({ outcome: "complete", note: "", retry: false });
    });
  }

  for (const [name, cause, outcome, retry, words] of ENDINGS) {
    test(`tells ${name} in plain words`, () => {
      const ending = describeEnding(cause, context);
      expect(ending).toEqual({ outcome, retry, note: expect.stringMatching(words) });
    });
  }

  test("has one shape and repeats nothing of an error, whatever ended the turn", () => {
    for (const [, cause] of ENDINGS) {
      const { note } = describeEnding(cause, context);
      expect(note).toMatch(/^_[A-Z][a-z -]+: [^\n]+\._$/);
      expect(note).not.toMatch(/canary|internal|ENOENT|Error|undefined/);
    }
  });

  test("gives each kind of gateway error words of its own", () => {
    const kinds: GatewayErrorKind[] = [
      "unreachable",
      "rate-limited",
      "overloaded",
      "unauthorized",
      "rejected",
      "malformed",
      "stalled",
      "interrupted",
    ];
    const notes = kinds.map((kind) => describeEnding(failed(kind), context).note);
    expect(new Set(notes).size).toBe(kinds.length);
  });

  for (const [retryAfterMs, words] of [
    [0, "Press Retry in 1 second."],
    [19_200, "Press Retry in 20 seconds."],
    [90_000, "Press Retry in 90 seconds."],
    [14 * 60_000, "Press Retry at about 14:05 UTC."],
    [3_600_000 * 11, "Press Retry on 2026-11-21 at about 00:51 UTC."],
    [Infinity, "Press Retry another day."],
  ] as const) {
    test(`says of a wait of ${retryAfterMs} ms: ${words}`, () => {
      expect(describeEnding(failed("rate-limited", { retryAfterMs }), context).note).toContain(words);
    });
  }

  test("keeps the name of a model inside its quotes", () => {
    const { note } = describeEnding(failed("rate-limited"), { ...context, model: "a`b" });
    expect(note).toContain("`a'b`");
  });
});
