import { expect, test } from "vitest";
import { checkPolicy } from "../../src/doctor/policy.ts";

test("the doctor names a rule that can never match, with the rule before it", () => {
  const findings = checkPolicy({
    access: {
      admins: ["person:1"],
      rules: [
        { deny: "pictures", to: "guests" },
        { deny: ["tools", "models"] },
        { allow: "tool:shop__count", to: "guests" },
        { allow: ["pictures", "chat"], to: "guests" },
        { deny: "pictures", to: "guests", in: "channel:C1" },
      ],
    },
    quotas: {},
  });
  expect(findings.filter(({ ok }) => !ok).map(({ what }) => what)).toEqual([
    "Rule 3: allow tool:shop__count to guests. It can never match, because rule 2 (deny tools, models) already decides all of its cases.",
    "Rule 5: deny pictures to guests in channel:C1. It can never match, because rule 1 (deny pictures to guests) already decides all of its cases.",
  ]);
  expect(findings[0]?.what).toBe("Admins, who can change the rules with /access: person:1.");
});

test("the doctor reports a group or role given by name instead of id", () => {
  const findings = checkPolicy({
    access: {
      admins: ["group:S024BE7LH"],
      rules: [{ deny: "chat", to: ["role:Mods", "role:118"] }],
    },
  });
  expect(findings.filter(({ ok }) => !ok).map(({ what }) => what)).toEqual([
    'The policy names a group or role "Mods", which is not an id: it matches no one.',
  ]);
});

test("the doctor explains the effect of a policy without admins", () => {
  expect(checkPolicy({ access: { rules: [{ deny: "chat" }] }, quotas: {} })[0]).toEqual({
    ok: true,
    what: expect.stringContaining("names no admins"),
  });
});

test("the doctor reports that a policy without rules or quotas allows everything, and counts the policy's warning as a problem", () => {
  const findings = checkPolicy({}, [], ["The policy file has lost its rules since this process started."]);
  expect(findings.map(({ ok, what }) => [ok, what])).toEqual([
    [false, "The policy file has lost its rules since this process started."],
    [true, "The policy has no rules: everyone can do everything."],
    [true, "The policy has no quotas: nothing is limited."],
    [true, expect.stringContaining("names no admins")],
  ]);
});

test("the doctor explains the longest policy without comparing every pair of words", () => {
  const many = (word: string, rule: number) => Array.from({ length: 50 }, (_, index) => `${word}:${rule}-${index}`);
  const rules = Array.from({ length: 500 }, (_, rule) => ({
    deny: "chat",
    to: many("person", rule),
    in: "everywhere",
  }));
  // Counts how often the words in a list are read, so that the test does not depend on the clock.
  let reads = 0;
  const counted = rules.map((rule) => ({
    ...rule,
    to: new Proxy(rule.to, {
      get(list, key, receiver): unknown {
        reads += 1;
        return Reflect.get(list, key, receiver);
      },
    }),
  }));
  expect(checkPolicy({ access: { rules: counted } }).filter(({ ok }) => !ok)).toEqual([]);
  expect(reads).toBeLessThan(500 * 500 * 10);
});

test("the doctor lists the limits of the policy, and finds a money limit without a price for the model", () => {
  const quotas = { person: { minute: { requests: 10 }, month: { money: 20 } } };
  const named = [
    { variable: "CHAT_MODEL", model: "gpt-large" },
    { variable: "IMAGE_MODEL", model: "painter" },
  ];
  const toWrong = (policy: Parameters<typeof checkPolicy>[0]) =>
    checkPolicy(policy, named)
      .filter(({ ok }) => !ok)
      .map(({ what }) => what);
  expect(checkPolicy({ quotas }, named).map(({ what }) => what)).toContain(
    "The policy has these limits: for each person 10 requests per minute, for each person 20 USD per month.",
  );
  expect(toWrong({ quotas })).toEqual([
    expect.stringMatching(/limits money but has no price for CHAT_MODEL gpt-large/),
    expect.stringContaining("IMAGE_MODEL painter"),
  ]);
  const prices = (models: object) => ({ currency: "USD", models: { painter: { picture: 1 }, ...models } });
  expect(toWrong({ quotas, prices: prices({}), models: { cheaper: { model: "small", below: 20 } } })).toEqual([
    expect.stringContaining("CHAT_MODEL gpt-large"),
    expect.stringContaining("model small"),
  ]);
  expect(toWrong({ quotas, prices: prices({ "*": { input: 1 } }) })).toEqual([]);
  expect(toWrong({ quotas: { person: { month: { tokens: 1 } } } })).toEqual([]);
});
