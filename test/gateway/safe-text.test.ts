import { describe, expect, test } from "vitest";
import { createSafeText } from "../../src/gateway/safe-text.ts";

const SECRET = "hunter2/with+odd=signs";
const safe = createSafeText([SECRET]);

describe("a safe sentence", () => {
  test("a safe sentence contains no configured secret, however it is written", () => {
    for (const form of [SECRET, encodeURIComponent(SECRET)]) {
      expect(safe.sentence(`key ${form} is wrong`)).toBe("key [hidden] is wrong");
    }
  });

  test("a safe sentence contains nothing that looks like a key", () => {
    const keys = [
      "sk-abcdef123456",
      "sk-proj-****************wxyz",
      "xoxb-1234567890-abcdef",
      "AIzaSyA1234567890abcdef",
      "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc",
      "0123456789abcdef0123456789abcdef",
      "ghp_abcdefghij1234567890",
    ];
    for (const key of keys) {
      const sentence = safe.sentence(`Incorrect key provided: ${key} (see the docs)`);
      expect(sentence).not.toContain(key.slice(4));
      expect(sentence).toMatch(/^Incorrect key provided: \S* \(see the docs\)$/);
    }
    expect(safe.sentence("Authorization: Bearer abc.def")).toBe("Authorization: Bearer [hidden]");
    expect(safe.sentence('{"api_key": "plainword"}')).not.toContain("plainword");
    expect(safe.sentence("GET /x?key=plainword&a=1 failed")).toBe("GET /x?key=[hidden]&a=1 failed");
  });

  test("a safe sentence keeps ordinary words, model names and request ids", () => {
    const text =
      "rate limit exceeded for model vendor/some-model-4.1-2025-04-14 (3f2c8a54-9d1e-4b7a-8c6d-0e1f2a3b4c5d)";
    expect(safe.sentence(text)).toBe(text);
  });

  test("a safe sentence is one line without invisible characters", () => {
    expect(safe.sentence("a\r\nb\u0000c\u202Ed\u200Be\u2028f  g")).toBe("a b c d e f g");
  });

  test("a safe sentence is short and does not end inside a character", () => {
    const sentence = safe.sentence(`${"x".repeat(298)}😀${"y".repeat(100_000)}`);
    expect(sentence.length).toBeLessThanOrEqual(300);
    expect(sentence.isWellFormed()).toBe(true);
  });
});

test("a safe name keeps a long id whole, but no secret", () => {
  expect(safe.name("chatcmpl-0123456789abcdef0123456789abcdef")).toBe("chatcmpl-0123456789abcdef0123456789abcdef");
  expect(safe.name(`id-${SECRET}\n`)).toBe("id-[hidden]");
});

test("a value too short to be a secret removes no words", () => {
  expect(createSafeText(["test", ""]).sentence("this is a test")).toBe("this is a test");
});
