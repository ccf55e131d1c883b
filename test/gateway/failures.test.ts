import { describe, expect, test } from "vitest";
import { hasError, readRetryAfter, toStatusError, toStreamError } from "../../src/gateway/failures.ts";
import { createSafeText } from "../../src/gateway/safe-text.ts";

const safe = createSafeText(["the-configured-key"]);
const refuse = (status: number, body: string, headers = {}) => toStatusError(status, headers, body, "some-model", safe);

describe("the error object", () => {
  test("an error object gives the error its type, code, param and message", () => {
    const error = {
      type: "invalid_request_error",
      code: "bad_value",
      message: "temperature is wrong",
      param: "temperature",
    };
    expect(refuse(400, JSON.stringify({ error }))).toMatchObject({
      kind: "rejected",
      status: 400,
      type: "invalid_request_error",
      code: "bad_value",
      param: "temperature",
      message: expect.stringContaining("temperature is wrong"),
    });
  });

  test("an error object can be a text, lack its envelope, be in a list, or have numbers", () => {
    expect(refuse(400, '{"error":"just words"}').message).toContain("just words");
    expect(refuse(400, '{"message":"bare words"}').message).toContain("bare words");
    expect(refuse(400, '{"detail":"other words"}').message).toContain("other words");
    const detail = [{ loc: ["body", "user"], msg: "extra fields not permitted", type: "value_error.extra" }];
    expect(refuse(422, JSON.stringify({ detail })).message).toContain("body.user: extra fields not permitted");
    expect(refuse(400, '{"code":7,"msg":"short words"}')).toMatchObject({
      code: "7",
      message: expect.stringContaining("short words"),
    });
    expect(refuse(400, '[{"error":{"code":400,"message":"listed words","status":"INVALID"}}]')).toMatchObject({
      code: "400",
      type: "INVALID",
      message: expect.stringContaining("listed words"),
    });
  });

  test("the client accepts a failure without an error object: no body, a page, a line of text, broken JSON", () => {
    expect(refuse(502, "").message).toBe("The gateway failed for model some-model (502).");
    expect(refuse(502, "<html><b>Bad</b></html>").message).toContain("(a web page instead of an error object)");
    expect(refuse(502, "upstream connect error").message).toContain("upstream connect error");
    expect(refuse(502, '{"error":{"mess').message).toBe("The gateway failed for model some-model (502).");
    expect(refuse(502, '{"error":{"message":{"a":1}}}').message).toBe("The gateway failed for model some-model (502).");
  });

  test("the client reads no wait from a long text, because that would block the process for seconds", () => {
    const details = [{ retryDelay: "1".repeat(2_000) + "s" }];
    expect(refuse(429, JSON.stringify({ error: { message: "Slow down", details } })).retryAfterMs).toBeUndefined();
    expect(refuse(429, '{"error":{"details":[{"retryDelay":"36.2s"}]}}').retryAfterMs).toBe(36_200);
  });

  test("the path of a broken rule leaves out everything that is neither a name nor a number", () => {
    const deep = `${"[".repeat(30_000)}${"]".repeat(30_000)}`;
    expect(refuse(422, `{"detail":[{"msg":"odd","loc":["body",${deep},{"toString":1},"user"]}]}`)).toMatchObject({
      param: "user",
      message: expect.stringContaining("body.user: odd"),
    });
  });

  test("the client ends an error's message as a sentence, so that another sentence can follow", () => {
    expect(refuse(404, '{"detail":"Not Found"}').message).toMatch(/ It said: Not Found\.$/);
    expect(refuse(400, '{"message":"Is this \\"it?\\""}').message).toMatch(/ It said: Is this "it\?"$/);
  });

  test("an error has the reason `too-long` if only its words say that the request is too long", () => {
    const said = [
      "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens.",
      "prompt is too long: 210000 tokens > 200000 maximum",
      "The input token count (9) exceeds the maximum number of tokens allowed (8).",
      "the request exceeds the available context size",
    ];
    for (const message of said) {
      expect(refuse(400, JSON.stringify({ error: { message, code: 400 } })).reason).toBe("too-long");
    }
    expect(refuse(400, '{"error":{"message":"the name is too long","code":"name"}}').reason).toBeUndefined();
  });

  test("the client recognises an error object inside an answer even if its envelope is missing", () => {
    expect(hasError({ object: "error", message: "worker died", code: 500 })).toBe(true);
    expect(toStreamError({ object: "error", message: "worker died" }, safe).message).toContain("worker died");
    expect(hasError({ object: "chat.completion.chunk", choices: [] })).toBe(false);
  });

  test("an error is shown without keys, on one line and shortened", () => {
    const message = `bad key the-configured-key or sk-other-secret-1\n${"x".repeat(1_000)}`;
    const error = refuse(401, JSON.stringify({ error: { message, code: "the-configured-key" } }));
    expect(error.message).not.toMatch(/the-configured-key|sk-other|\n/);
    expect(error.message.length).toBeLessThan(400);
    expect(error.code).not.toContain("the-configured-key");
  });
});

describe("the kind of a failure", () => {
  const kinds: Array<[number, string]> = [
    [401, "unauthorized"],
    [403, "unauthorized"],
    [429, "rate-limited"],
    [400, "rejected"],
    [404, "rejected"],
    [408, "overloaded"],
    [409, "overloaded"],
    [425, "overloaded"],
    [500, "overloaded"],
    [503, "overloaded"],
    [501, "rejected"],
    [505, "rejected"],
    [302, "malformed"],
  ];
  for (const [status, kind] of kinds)
    test(`the status ${status} means ${kind}`, () => expect(refuse(status, "").kind).toBe(kind));
});

test("the error of a rate limit names the model and the wait", () => {
  const error = refuse(429, "", { "retry-after": "12" });
  expect(error.message).toBe(
    "The gateway's rate limit for model some-model is reached (429). It asks you to wait 12 s.",
  );
  expect(error.retryAfterMs).toBe(12_000);
});

describe("Retry-After", () => {
  const now = Date.UTC(1994, 10, 6, 8, 49, 0);

  test("the header Retry-After is in seconds or one of the three HTTP dates", () => {
    expect(readRetryAfter("0", now)).toBe(0);
    expect(readRetryAfter(" 1.5 ", now)).toBe(1_500);
    expect(readRetryAfter("Sun, 06 Nov 1994 08:49:37 GMT", now)).toBe(37_000);
    expect(readRetryAfter("Sunday, 06-Nov-94 08:49:37 GMT", now)).toBe(37_000);
    expect(readRetryAfter("Sun Nov  6 08:49:37 1994", now)).toBe(37_000);
  });

  test("the client reads a Retry-After in the past as 0", () => {
    expect(readRetryAfter("Sun, 06 Nov 1994 08:48:37 GMT", now)).toBe(0);
  });

  test("the client ignores other values of Retry-After", () => {
    for (const header of [undefined, "", "-5", "soon", "1e9", "0x10", "NaN"]) {
      expect(readRetryAfter(header, now)).toBeUndefined();
    }
  });
});

describe("an error object instead of an answer", () => {
  const named: Array<[object, string, number]> = [
    [{ type: "invalid_request_error", code: "context_length_exceeded" }, "rejected", 400],
    [{ code: "model_not_found", param: "model" }, "rejected", 404],
    [{ code: 401, message: "User not found" }, "unauthorized", 401],
    [{ code: 402, message: "Insufficient credits" }, "rejected", 402],
    [{ code: 429 }, "rate-limited", 429],
    [{ type: "rate_limit_error", code: "rate_limit_exceeded" }, "rate-limited", 429],
    [{ code: "content_policy_violation" }, "rejected", 400],
  ];
  test.each(named)("an error object instead of an answer counts as its rejection: %j", (error, kind, status) => {
    expect(toStreamError({ error }, safe)).toMatchObject({ kind, status });
    expect(toStreamError({ error }, safe, true)).toMatchObject({ kind: "interrupted", status: undefined });
  });

  test.each([{ code: 500 }, { type: "server_error" }, { code: "overloaded" }, { code: 200 }])(
    "an error object that reports a failure ends the answer, which may have been billed: %j",
    (error) => expect(toStreamError({ error }, safe)).toMatchObject({ kind: "interrupted" }),
  );
});

test("an error inside a stream can lack a message", () => {
  for (const value of [undefined, {}, { error: {} }, { error: true }]) {
    expect(toStreamError(value, safe)).toMatchObject({ kind: "interrupted" });
  }
});
