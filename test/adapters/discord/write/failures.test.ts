import { describe, expect, test } from "vitest";
import { ApiError, toNetworkError } from "../../../../adapters/discord/api/error.ts";
import { toSinkError } from "../../../../adapters/discord/write/failures.ts";
import { SinkError } from "../../../../src/port/errors.ts";

const signal = new AbortController().signal;

function kindOf(status: number, code: number, isForeign = false): string {
  const error = toSinkError(new ApiError("words", { status, code, retryAfterMs: 700, isForeign }), signal);
  return error instanceof SinkError ? error.kind : "none";
}

describe("the meaning of Discord's refusals", () => {
  test.each([
    [404, 10003, "gone"],
    [404, 10004, "gone"],
    [404, 10008, "gone"],
    [404, 10015, "gone"],
    [401, 50027, "gone"],
    [404, 10062, "gone"],
    [400, 40060, "gone"],
    [403, 50001, "forbidden"],
    [403, 50013, "forbidden"],
    [403, 50007, "forbidden"],
    [403, 50278, "forbidden"],
    [403, 50005, "forbidden"],
    [400, 50083, "forbidden"],
    [400, 160002, "forbidden"],
    [400, 160005, "forbidden"],
    [400, 30046, "forbidden"],
    [400, 50035, "rejected"],
    [400, 50006, "rejected"],
    [413, 40005, "rejected"],
    [400, 200000, "filtered"],
    [400, 240000, "filtered"],
    [400, 20009, "filtered"],
    [429, 20016, "rate-limited"],
    [429, 20028, "rate-limited"],
    [429, 40333, "rate-limited"],
    [429, 0, "rate-limited"],
    [401, 0, "unavailable"],
    [500, 0, "unavailable"],
    [503, 130000, "unavailable"],
    [403, 0, "forbidden"],
    [404, 0, "gone"],
    [400, 0, "rejected"],
  ])("a refusal with status %i and code %i means %s", (status, code, kind) => expect(kindOf(status, code)).toBe(kind));

  test("a refusal by a proxy does not count as Discord's", () => {
    expect([403, 404, 413, 400].map((status) => kindOf(status, 0, true))).toEqual([
      "unavailable",
      "unavailable",
      "rejected",
      "rejected",
    ]);
  });

  test("a rate limit's failure includes the wait", () => {
    const error = toSinkError(new ApiError("words", { status: 429, code: 0, retryAfterMs: 700 }), signal);
    expect(error).toMatchObject({ kind: "rate-limited", retryAfterMs: 700 });
  });

  test("after a failure without a response, it is unknown whether Discord wrote the message, and the error quotes no text", () => {
    const cause = Object.assign(new Error("connect to https://x/webhooks/1/token failed"), { code: "ECONNRESET" });
    const error = toSinkError(toNetworkError("POST", cause), signal);
    expect(error).toMatchObject({ kind: "unavailable", message: expect.stringContaining("ECONNRESET") });
    expect((error as Error).message).not.toContain("token");
  });

  test("an abort keeps its own reason", () => {
    const reason = new Error("enough");
    expect(toSinkError(reason, AbortSignal.abort(reason))).toBe(reason);
  });
});
