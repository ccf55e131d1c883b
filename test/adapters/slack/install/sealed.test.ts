import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { createSeal } from "../../../../adapters/slack/install/sealed.ts";

const key = randomBytes(32);
const TEXT = "xoxb-a-token é";

test("what is sealed opens with the same key and name", () => {
  const sealed = createSeal(key).close("T1", TEXT);
  expect(createSeal(key).open("T1", sealed)).toBe(TEXT);
  expect(sealed).not.toContain("xoxb");
});

test("the same text is never sealed the same way twice", () => {
  const seal = createSeal(key);
  expect(seal.close("T1", TEXT)).not.toBe(seal.close("T1", TEXT));
});

test("nothing opens with another key, under another name, changed or cut", () => {
  const seal = createSeal(key);
  const sealed = seal.close("T1", TEXT);
  const changed = Buffer.from(sealed, "base64url");
  changed[30] = (changed[30] ?? 0) ^ 1;
  expect(() => createSeal(randomBytes(32)).open("T1", sealed)).toThrow();
  expect(() => seal.open("T2", sealed)).toThrow();
  expect(() => seal.open("T1", changed.toString("base64url"))).toThrow();
  for (const length of [0, 5, 20, sealed.length - 2]) expect(() => seal.open("T1", sealed.slice(0, length))).toThrow();
});

test("a key of another length is refused", () => {
  expect(() => createSeal(randomBytes(16))).toThrow(/16 bytes; 32 are needed/);
});
