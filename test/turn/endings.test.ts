import { describe, expect, test } from "vitest";
import { startEngine } from "../../lab/support/engine.ts";
import { command, message } from "../../lab/support/events.ts";
import type { ChatMessage } from "../../src/gateway/chunks.ts";
import { GatewayError, type GatewayErrorKind, type GatewayErrorOptions } from "../../src/gateway/errors.ts";
import type { Cause } from "../../src/reply/reply.ts";
import { describeDropped, describeEnding, readFinish } from "../../src/turn/endings.ts";
import { events, json, startFaultServer, stream } from "../support/fault-server.ts";
import { connect } from "../support/gateway-client.ts";

const context = { model: "maker/model_one", now: Date.UTC(2026, 10, 20, 13, 50, 30) };
const failed = (kind: GatewayErrorKind, options: GatewayErrorOptions = {}): Cause => ({
  error: new GatewayError(kind, "sk-canary from https://gateway.internal/v1", options),
});

/** A `final` ending counts as failed and offers no Retry. */
const ENDINGS: Readonly<Record<string, [Cause, string, RegExp]>> = {
  length: [{ finish: "length" }, "length", /^_The answer hit the length limit\. Press Continue for the rest\._$/],
  "a content filter": [{ finish: "CONTENT_FILTER" }, "filtered", /content filter.*[Rr]ephrase your request/],
  "an unknown reason": [
    { finish: "insufficient_system_resource" },
    "interrupted",
    /broke off before it was finished.*Retry/,
  ],
  "endless tools": [{ finish: "tool_limit" }, "interrupted", /kept using tools/],
  "stopped by a person": [{ error: "stopped" }, "stopped", /^_This answer was stopped on request\._$/],
  "given up": [{ error: "given-up" }, "failed", /several times/],
  shutdown: [{ error: "shutdown" }, "shutdown", /shut down/],
  "a timeout": [{ error: new DOMException("", "TimeoutError") }, "interrupted", /longer than allowed/],
  "an abort without a reason": [{ error: AbortSignal.abort().reason }, "interrupted", /was interrupted/],
  "an unknown error": [{ error: new Error("ENOENT /etc/palaver sk-canary") }, "failed", /wrong on my side/],
  "filtered by the platform": [{ error: "filtered" }, "filtered", /filter here.*[Rr]ephrase your request/],
  "refused by the platform": [{ error: "refused" }, "interrupted", /can't write more/],
  "wrong key": [failed("unauthorized", { status: 401 }), "final", /key\. .*operator can check `GATEWAY_API_KEY`/],
  "model not permitted": [
    failed("unauthorized", { status: 403 }),
    "final",
    /doesn't let this bot use the model `maker\/model_one` \(403\)/,
  ],
  "a model that the service does not have": [
    failed("rejected", { status: 400, reason: "unknown-model" }),
    "final",
    /has no model `maker\/model_one`/,
  ],
  "a model that the key does not have": [
    failed("unauthorized", { status: 401, reason: "unknown-model" }),
    "final",
    /has no model `maker\/model_one` for this bot/,
  ],
  "a wrong address": [failed("rejected", { status: 404 }), "final", /\(404\).*`GATEWAY_BASE_URL`/],
  "context too long": [
    failed("rejected", { status: 400, reason: "too-long" }),
    "final",
    /too long for the model `maker\/model_one`\. Send less/,
  ],
  "request too large": [failed("rejected", { status: 413 }), "final", /too long for the model/],
  "no credit": [failed("rejected", { status: 429, reason: "no-credit" }), "final", /no credit left.*add credit/],
  "filtered request": [failed("rejected", { status: 400, reason: "filtered" }), "filtered", /content filter/],
  "an unknown refusal": [
    failed("rejected", { status: 400, code: "unsupported_parameter" }),
    "final",
    /^_The AI service refused this request \(400\)\. My log says why\._$/,
  ],
  "a request that was not sent": [failed("rejected"), "final", /couldn't send .* log says why/],
  "rate limit": [failed("rate-limited", { status: 429 }), "failed", /limiting requests .*Press Retry in a minute/],
  "a model that is away": [failed("overloaded", { status: 503, reason: "unknown-model" }), "failed", /overloaded/],
  overloaded: [failed("overloaded", { status: 529 }), "failed", /is overloaded right now\. Press Retry in a minute/],
  "a failure of the service": [failed("overloaded", { status: 500 }), "failed", /service failed \(500\)\. Press Retry/],
  "a pause after failures": [
    failed("overloaded", { status: 500, isPause: true, retryAfterMs: 8_200 }),
    "failed",
    /^_The AI service failed, so I'm waiting before I ask again\. Press Retry in 9 seconds\._$/,
  ],
  "a pause that a rate limit asked for": [
    failed("rate-limited", { status: 429, isPause: true, retryAfterMs: 8_200 }),
    "failed",
    /limiting requests .* Press Retry in 9 seconds/,
  ],
  unreachable: [failed("unreachable"), "failed", /can't reach the AI service.*`GATEWAY_BASE_URL`/],
  stalled: [failed("stalled"), "interrupted", /stopped sending/],
  "broken off": [
    failed("interrupted"),
    "interrupted",
    /broke off before it was finished\. Press Retry to ask again\._$/,
  ],
  "filter in the stream": [failed("interrupted", { reason: "filtered" }), "filtered", /content filter/],
  malformed: [failed("malformed"), "interrupted", /not an answer/],
};

describe("the words at the end of an answer", () => {
  test("describeEnding says who stopped the answer", () => {
    const noteOf = (stoppedBy: string) => describeEnding({ error: "stopped" }, { ...context, stoppedBy }).note;
    expect(noteOf("you")).toBe("_You stopped this answer._");
    expect(noteOf("`Ben`")).toBe("_`Ben` stopped this answer._");
  });

  test("describeEnding says nothing under a complete answer", () => {
    expect(describeEnding({ finish: "END_TURN" }, context)).toEqual({ outcome: "complete", note: "", retry: false });
  });

  for (const [name, [cause, kind, words]] of Object.entries(ENDINGS)) {
    test(`describeEnding explains ${name} in plain words`, () => {
      const ending = describeEnding(cause, context);
      const outcome = kind === "final" ? "failed" : kind;
      expect(ending).toEqual({ outcome, retry: kind !== "final", note: expect.stringMatching(words) });
    });
  }

  test("describeEnding writes sentences, names no gateway and quotes no error, whatever ended the turn", () => {
    for (const [cause] of Object.values(ENDINGS)) {
      const { note } = describeEnding(cause, context);
      expect(note).toMatch(/^_[A-Z][^\n]+\._$/);
      expect(note).not.toMatch(/canary|internal|ENOENT|Error|undefined|gateway\b/);
    }
  });

  test("describeEnding explains each kind of gateway error differently", () => {
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
    test(`describeEnding describes a wait of ${retryAfterMs} ms as: ${words}`, () => {
      expect(describeEnding(failed("rate-limited", { retryAfterMs }), context).note).toContain(words);
    });
  }

  test("describeEnding keeps a model's name inside its quotes", () => {
    const { note } = describeEnding(failed("rate-limited"), { ...context, model: "a`b" });
    expect(note).toContain("`a'b`");
  });
});

const REASONS = [
  ["whole", "stop STOP end_turn stop_sequence eos eos_token tool_calls tool_use function_call complete completed done"],
  ["length", "length MAX_TOKENS model_length max_output_tokens"],
  ["filtered", "content_filter SAFETY prohibited_content recitation blocklist spii refusal image_safety"],
  ["filtered", "guardrail_intervened sensitive"],
  ["broken", "insufficient_system_resource abort network_error error cancelled something_else"],
] as const;

test.each(REASONS)("the finish reasons that mean %s are: %s", (finish, reasons) => {
  for (const reason of reasons.split(" ")) expect([reason, readFinish(reason)]).toEqual([reason, finish]);
});

const picture: ChatMessage = { role: "user", content: [{ type: "image_url", image_url: { url: "https://a.test/b" } }] };
const answer: ChatMessage = { role: "assistant", content: "Hello." };
const words: ChatMessage = { role: "user", content: "Hello?" };

describe("options that the model did not accept", () => {
  test("the answer names an option that the model rejected if the channel had set it", async () => {
    const message400 = "Unsupported parameter: 'temperature' is not supported with this model.";
    const error = { message: message400, type: "invalid_request_error", code: "unsupported_parameter" };
    const refuse = json(400, { error: { ...error, param: "temperature" } });
    const { url } = await startFaultServer((response, received) => {
      const isWarm = (received.json as { temperature?: number } | undefined)?.temperature !== undefined;
      return (isWarm ? refuse : events(stream("Hello.")))(response, received);
    });
    const { accept, handle, texts } = startEngine({ gateway: connect(url), model: "m" });
    await accept(command("model", "--temperature 0.5"));
    for (const question of ["Hi", "Hi again"]) {
      await handle(message(question));
    }
    const note = "_The model `m` doesn't accept a temperature, so it used its own._";
    expect(texts().slice(1)).toEqual([`Hello.\n\n${note}`, `Hello.\n\n${note}`]);
  });

  test("the answer does not mention a rejected option that neither channel nor question needed", () => {
    const names = new Set(["temperature", "max_tokens", "response_format", "pictures", "tools", "user"]);
    const messages = [picture, answer, words];
    expect(describeDropped(names, { model: "m", options: {}, messages })).toBe("");
    expect(describeDropped(new Set(), { model: "m", options: { temperature: 1 }, messages: [picture] })).toBe("");
  });

  test("the answer names a rejected web search", () => {
    const note = describeDropped(new Set(["web_search_options"]), {
      model: "m",
      options: { web: "low" },
      messages: [],
    });
    expect(note).toBe("_The model `m` can't search the web, so it answered without a search._");
  });

  test("the answer names several rejected options in one line", () => {
    const names = new Set(["pictures", "max_tokens", "response_format"]);
    const options = { maxTokens: 100, format: "json" as const };
    expect(describeDropped(names, { model: "m", options, messages: [answer, picture, words] })).toBe(
      "_The model `m` doesn't accept this length limit, so it used its own. It doesn't support JSON output, so I asked for JSON in the prompt. It can't see images, so it answered from the text alone._",
    );
  });
});
