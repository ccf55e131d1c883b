import { expect, test } from "vitest";
import { pseudonym } from "../../src/app/pseudonym.ts";

test("a pseudonym is the same for the same person, and differs by person, platform and secret", () => {
  const all = [
    pseudonym("secret", "slack", "U1"),
    pseudonym("secret", "slack", "U2"),
    pseudonym("secret", "discord", "U1"),
    pseudonym("other", "slack", "U1"),
    pseudonym("secret", "slackU", "1"),
  ];
  expect(new Set(all).size).toBe(all.length);
  expect(pseudonym("secret", "slack", "U1")).toBe(all[0]);
});

test("a pseudonym is short, plain and does not contain the id", () => {
  expect(pseudonym("secret", "slack", "U0123456789")).toMatch(/^u_[\w-]{22}$/);
  expect(pseudonym("secret", "slack", "U0123456789")).not.toContain("U0123456789");
});
