import { assert, property, string } from "fast-check";
import { describe, expect, test } from "vitest";
import { tokenForms } from "../../src/config/summary.ts";
import { createRedactor } from "../../src/log/redact.ts";
import { modules } from "../support/config.ts";

const MARK = "[redacted]";

describe("secrets in a text", () => {
  const { text } = createRedactor(['pass"word\\1', "hunter2 & co", "hunter2 & company"], tokenForms(modules));

  test.each([
    ["the value itself", 'it is pass"word\\1!', `it is ${MARK}!`],
    ["the value inside JSON", JSON.stringify({ password: 'pass"word\\1' }), `{"password":"${MARK}"}`],
    ["the value inside JSON inside JSON", JSON.stringify(JSON.stringify('pass"word\\1')).slice(1, -1), `\\"${MARK}\\"`],
    ["the value inside an address", `/?q=${encodeURIComponent("hunter2 & co")}.`, `/?q=${MARK}.`],
    ["the longer of two that begin alike", "hunter2 & company", MARK],
    ["a Slack bot token", "token xoxb-12-34-aBc.", `token ${MARK}.`],
    ["a rotated Slack token", "xoxe.xoxb-1-MjE", MARK],
    ["a Slack app token", "(xapp-1-A0-12-ff)", `(${MARK})`],
    ["a gateway key", "key sk-proj_abcdefgh12", `key ${MARK}`],
    ["a Bearer header", "Authorization: Bearer abc.def-123", `Authorization: Bearer ${MARK}`],
    ["a Discord token", `Bot ${"M".repeat(24)}.GhIjKl.${"x".repeat(38)}`, `Bot ${MARK}`],
    [
      "a Discord interaction address",
      `/interactions/123456789012345678/${"aW50".repeat(20)}/callback`,
      `/interactions/123456789012345678/${MARK}/callback`,
    ],
    ["a Slack hook", "https://hooks.slack.com/services/T0/B0/xyz end", `https://hooks.slack.com/${MARK} end`],
    [
      "a signature in an address",
      "https://cdn.example/a.png?ex=1&hm=00ff&size=2",
      `https://cdn.example/a.png?ex=1&hm=${MARK}&size=2`,
    ],
    ["a credential in an address", "/x?X-Amz-Credential=AK%2Fx&v=1", `/x?X-Amz-Credential=${MARK}&v=1`],
    [
      "a signed address inside an address",
      "/p?u=https%3A%2F%2Fcdn%3Fsig%3Dabc",
      `/p?u=https%3A%2F%2Fcdn%3Fsig%3D${MARK}`,
    ],
    ["a password in an address", "redis://me:word@host:1", `redis://${MARK}@host:1`],
  ])("redaction removes %s", (_, given, expected) => {
    expect(text(given)).toBe(expected);
  });

  test.each([
    "task-12345678901234",
    "the disk-based risk-averse approach",
    "a token of love",
    "https://a.example/?q=1",
    "v1.2.3",
  ])("redaction keeps %s", (harmless) => expect(text(harmless)).toBe(harmless));

  test("redaction ignores very short secrets, so that it does not remove ordinary words", () => {
    expect(createRedactor(["a", ""], tokenForms(modules)).text("banana")).toBe("banana");
  });

  test("redacted text never contains a secret, wherever it is", () => {
    const secrets = string({ unit: "grapheme", minLength: 6, maxLength: 20 }).filter(
      (secret) => !MARK.includes(secret),
    );
    assert(
      property(secrets, string(), string(), (secret, before, after) => {
        expect(createRedactor([secret], tokenForms(modules)).text(before + secret + after)).not.toContain(secret);
      }),
    );
  });

  test("redaction takes linear time on text made to be slow", () => {
    const hostile = ["?", "://a:", "x".repeat(30), "&key", "Bearer ", "sk-", "%3F"].map((part) => part.repeat(20_000));
    for (const part of hostile) expect(text(part).length).toBeGreaterThan(0);
  });
});

describe("secrets in a line of the log", () => {
  const { line } = createRedactor(["canary-1", '","level":"x'], tokenForms(modules));

  test("a redacted line stays one line of JSON, without secrets in keys and values", () => {
    const given = { level: "info", "key canary-1": [{ deep: "x canary-1 y" }], n: 1, msg: "one\nxoxb-1234-5678" };
    const clean = line(`${JSON.stringify(given)}\n`);
    expect(clean.endsWith("}\n")).toBe(true);
    expect(JSON.parse(clean)).toEqual({
      level: "info",
      [`key ${MARK}`]: [{ deep: `x ${MARK} y` }],
      n: 1,
      msg: `one\n${MARK}`,
    });
  });

  test("a redacted line stays JSON even if a secret looks like JSON", () => {
    const given = { msg: 'a","level":"xb', level: "info" };
    expect(JSON.parse(line(JSON.stringify(given)))).toEqual({ msg: `a${MARK}b`, level: "info" });
  });

  test("a line without secrets stays unchanged", () => {
    const plain = '{"level":"info",  "msg":"hello"}\n';
    expect(line(plain)).toBe(plain);
  });

  test("a line that is not JSON becomes JSON", () => {
    expect(JSON.parse(line("plain canary-1\n"))).toEqual({ msg: `plain ${MARK}\n` });
  });
});
