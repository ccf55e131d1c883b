import { describe, expect, test } from "vitest";
import { GatewayError } from "../../src/gateway/errors.ts";
import { describeForLog } from "../../src/log/fields.ts";

const asIs = (text: string) => text;

describe("describeForLog", () => {
  test("describeForLog keeps plain values", () => {
    const plain = { text: "a", number: 1, yes: true, nothing: null, list: [1, "b"], nested: { deeper: {} } };
    expect(describeForLog(plain, asIs)).toEqual(plain);
  });

  test("describeForLog copies known fields of an error, and nothing else", () => {
    const error = Object.assign(
      new GatewayError("rate-limited", "too fast", { status: 429, code: "slow", retryAfterMs: 5 }),
      {
        config: { headers: { authorization: "Bearer x" } },
        response: { body: "secret" },
      },
    );
    const described = describeForLog(error, asIs);
    expect(described).toEqual({
      name: "GatewayError",
      message: "too fast",
      kind: "rate-limited",
      status: 429,
      code: "slow",
      retryAfterMs: 5,
      stack: expect.stringMatching(/^at .*fields\.test\.ts/),
    });
  });

  test("describeForLog copies the message of an error only if asked to, apart from an error's own words", () => {
    const error = new GatewayError("rejected", "It refused.", { quote: " It said: no", code: "a sentence" });
    expect(describeForLog(error, asIs)).toMatchObject({ message: "It refused." });
    expect(describeForLog(error, asIs)).not.toHaveProperty("code");
    expect(describeForLog(error, asIs, true)).toMatchObject({ message: "It refused. It said: no" });
    expect(describeForLog(new Error("odd"), asIs)).not.toHaveProperty("message");
  });

  test("describeForLog does not copy a known field that is neither text nor number", () => {
    const error = Object.assign(new Error("odd"), { code: { headers: 1 }, status: () => 1, kind: null });
    expect(Object.keys(describeForLog(error, asIs) as object)).toEqual(["name", "stack"]);
  });

  test("describeForLog follows causes and aggregated errors that are errors or plain", () => {
    const error = new Error("outer", {
      cause: new AggregateError([new Error("first"), { headers: 1 }, "word"], "inner"),
    });
    expect(describeForLog({ nested: [error] }, asIs, true)).toMatchObject({
      nested: [
        { message: "outer", cause: { message: "inner", errors: [{ message: "first" }, "[not an error]", "word"] } },
      ],
    });
    expect(describeForLog(new Error("x", { cause: { headers: 1 } }), asIs)).toMatchObject({ cause: "[not an error]" });
  });

  test("describeForLog terminates on circles, endless causes and huge objects", () => {
    const circle: Record<string, unknown> = {};
    circle["self"] = circle;
    const endless = new Error("endless");
    endless.cause = endless;
    const many = Array.from({ length: 5000 }, () => "x");
    const wide = Array.from({ length: 5000 }, () => ({ a: many }));
    for (const value of [circle, endless, wide]) {
      expect(JSON.stringify(describeForLog(value, asIs)).length).toBeLessThan(50_000);
    }
  });

  test("describeForLog shows bytes by their number and dates by their time", () => {
    const value = {
      bytes: Buffer.from("abc"),
      view: new DataView(new ArrayBuffer(4)),
      date: new Date(0),
      never: new Date(NaN),
      big: 5n,
    };
    expect(describeForLog(value, asIs)).toEqual({
      bytes: "[3 bytes]",
      view: "[4 bytes]",
      date: "1970-01-01T00:00:00.000Z",
      never: null,
      big: "5",
    });
  });

  test("describeForLog survives an object that throws when it is read", () => {
    const hostile = {
      get trap(): string {
        throw new Error("no");
      },
    };
    expect(describeForLog({ hostile }, asIs)).toBe("[unreadable]");
  });

  test("describeForLog redacts before it truncates, so that no half of a secret remains", () => {
    const secret = "s3cret".repeat(10);
    const redact = (text: string) => text.replaceAll(secret, "[redacted]");
    const described = describeForLog("x".repeat(3970) + secret + "y".repeat(100), redact);
    expect(described).not.toContain("s3cret");
    expect(described).toMatch(/… \(4130 characters\)$/);
  });
});
