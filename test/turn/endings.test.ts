import { describe, expect, test } from "vitest";
import { GatewayError, type GatewayErrorKind, type GatewayErrorOptions } from "../../src/gateway/errors.ts";
import type { Cause } from "../../src/reply/reply.ts";
import { describeEnding } from "../../src/turn/endings.ts";

const context = { model: "maker/model_one", now: Date.UTC(2026, 10, 20, 13, 50, 30) };
const failed = (kind: GatewayErrorKind, options: GatewayErrorOptions = {}): Cause => ({
  error: new GatewayError(kind, "sk-canary from https://gateway.internal/v1", options),
});

const ENDINGS: ReadonlyArray<[string, Cause, string, boolean, RegExp]> = [
  [
    "length",
    { finish: "length" },
    "length",
    true,
    /^_The answer hit the length limit\. Press Continue for the rest\._$/,
  ],
  ["a content filter", { finish: "CONTENT_FILTER" }, "filtered", true, /content filter.*in other words/],
  [
    "an unknown reason",
    { finish: "insufficient_system_resource" },
    "interrupted",
    true,
    /broke off before it was finished.*Retry/,
  ],
  ["endless tools", { finish: "tool_limit" }, "interrupted", true, /kept using tools/],
  ["stopped by a person", { error: "stopped" }, "stopped", true, /^_This answer was stopped on request\._$/],
  ["given up", { error: "given-up" }, "failed", true, /several times/],
  ["shutdown", { error: "shutdown" }, "shutdown", true, /shut down/],
  ["a timeout", { error: new DOMException("", "TimeoutError") }, "interrupted", true, /longer than is allowed/],
  ["an abort without a reason", { error: AbortSignal.abort().reason }, "interrupted", true, /cut short/],
  ["an unknown error", { error: new Error("ENOENT /etc/palaver sk-canary") }, "failed", true, /wrong inside the bot/],
  ["filtered by the platform", { error: "filtered" }, "filtered", true, /filter of this place.*in other words/],
  ["refused by the platform", { error: "refused" }, "interrupted", true, /channel accepts no more/],
  [
    "wrong key",
    failed("unauthorized", { status: 401 }),
    "failed",
    false,
    /key\. .*operator can check `GATEWAY_API_KEY`/,
  ],
  [
    "model not permitted",
    failed("unauthorized", { status: 403 }),
    "failed",
    false,
    /doesn't let this bot use the model `maker\/model_one` \(403\)/,
  ],
  [
    "a model that the service does not have",
    failed("rejected", { status: 400, reason: "unknown-model" }),
    "failed",
    false,
    /has no model `maker\/model_one`/,
  ],
  [
    "a model that the key does not have",
    failed("unauthorized", { status: 401, reason: "unknown-model" }),
    "failed",
    false,
    /has no model `maker\/model_one` for this bot/,
  ],
  ["a wrong address", failed("rejected", { status: 404 }), "failed", false, /\(404\).*`GATEWAY_BASE_URL`/],
  [
    "context too long",
    failed("rejected", { status: 400, reason: "too-long" }),
    "failed",
    false,
    /too long for the model `maker\/model_one`\. Send less/,
  ],
  ["request too large", failed("rejected", { status: 413 }), "failed", false, /too long for the model/],
  [
    "no credit",
    failed("rejected", { status: 429, reason: "no-credit" }),
    "failed",
    false,
    /no credit left.*add credit/,
  ],
  ["filtered request", failed("rejected", { status: 400, reason: "filtered" }), "filtered", true, /content filter/],
  [
    "an unknown refusal",
    failed("rejected", { status: 400, code: "unsupported_parameter" }),
    "failed",
    false,
    /^_The AI service refused this request \(400\)\. The bot's log says why\._$/,
  ],
  ["a request that was not sent", failed("rejected"), "failed", false, /could not ask .* log says why/],
  [
    "rate limit",
    failed("rate-limited", { status: 429 }),
    "failed",
    true,
    /limiting requests .*Press Retry in a minute/,
  ],
  [
    "a model that is away",
    failed("overloaded", { status: 503, reason: "unknown-model" }),
    "failed",
    true,
    /overloaded/,
  ],
  [
    "overloaded",
    failed("overloaded", { status: 529 }),
    "failed",
    true,
    /is overloaded right now\. Press Retry in a minute/,
  ],
  [
    "a failure of the service",
    failed("overloaded", { status: 500 }),
    "failed",
    true,
    /service failed \(500\)\. Press Retry/,
  ],
  [
    "a pause after failures",
    failed("overloaded", { status: 500, isPause: true, retryAfterMs: 8_200 }),
    "failed",
    true,
    /^_The AI service failed, so I'm waiting before I ask again\. Press Retry in 9 seconds\._$/,
  ],
  [
    "a pause that a rate limit asked for",
    failed("rate-limited", { status: 429, isPause: true, retryAfterMs: 8_200 }),
    "failed",
    true,
    /limiting requests .* Press Retry in 9 seconds/,
  ],
  ["unreachable", failed("unreachable"), "failed", true, /can't reach the AI service.*`GATEWAY_BASE_URL`/],
  ["stalled", failed("stalled"), "interrupted", true, /stopped sending/],
  [
    "broken off",
    failed("interrupted"),
    "interrupted",
    true,
    /broke off before it was finished\. Press Retry to ask again\._$/,
  ],
  ["filter in the stream", failed("interrupted", { reason: "filtered" }), "filtered", true, /content filter/],
  ["malformed", failed("malformed"), "interrupted", true, /not an answer/],
];

describe("describeEnding", () => {
  test("says who stopped it", () => {
    const noteOf = (stoppedBy: string) => describeEnding({ error: "stopped" }, { ...context, stoppedBy }).note;
    expect(noteOf("you")).toBe("_You stopped this answer._");
    expect(noteOf("`Ben`")).toBe("_`Ben` stopped this answer._");
  });

  test("says nothing under an answer that is whole", () => {
    expect(describeEnding({ finish: "END_TURN" }, context)).toEqual({ outcome: "complete", note: "", retry: false });
  });

  for (const [name, cause, outcome, retry, words] of ENDINGS) {
    test(`tells ${name} in plain words`, () => {
      const ending = describeEnding(cause, context);
      expect(ending).toEqual({ outcome, retry, note: expect.stringMatching(words) });
    });
  }

  test("is sentences, names no gateway and repeats nothing of an error, whatever ended the turn", () => {
    for (const [, cause] of ENDINGS) {
      const { note } = describeEnding(cause, context);
      expect(note).toMatch(/^_[A-Z][^\n]+\._$/);
      expect(note).not.toMatch(/canary|internal|ENOENT|Error|undefined|gateway\b/);
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
