import { expect, test } from "vitest";
import { checkPolicy } from "../../src/doctor/policy.ts";

test("a rule that can never match is named, with the rule that stands before it", () => {
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
    "Rule 3: allow tool:shop__count to guests. It can never match, because rule 2 (deny tools, models) decides everything that it is about.",
    "Rule 5: deny pictures to guests in channel:C1. It can never match, because rule 1 (deny pictures to guests) decides everything that it is about.",
  ]);
  expect(findings[0]?.what).toBe("Admins, who may change the rules with /access: person:1.");
});

test("a group or role that is named by its name is one that matches nobody", () => {
  const findings = checkPolicy({
    access: {
      admins: ["group:S024BE7LH"],
      rules: [{ deny: "chat", to: ["role:Mods", "role:118"] }],
    },
  });
  expect(findings.filter(({ ok }) => !ok).map(({ what }) => what)).toEqual([
    'The policy names a group or role "Mods", which is no id: it matches nobody.',
  ]);
});

test("a policy without admins says what follows from that", () => {
  expect(checkPolicy({ access: { rules: [{ deny: "chat" }] }, quotas: {} })[0]).toEqual({
    ok: true,
    what: expect.stringContaining("names no admins"),
  });
});

test("a policy without rules or quotas says that it allows everything, and warnings count as wrong", () => {
  const findings = checkPolicy({}, ["The policy file has lost its rules since this process started."]);
  expect(findings.map(({ ok, what }) => [ok, what])).toEqual([
    [false, "The policy file has lost its rules since this process started."],
    [true, "The policy has no rules: everybody may do everything."],
    [true, "The policy has no quotas: nothing is limited."],
    [true, expect.stringContaining("names no admins")],
  ]);
});

test("the longest policy is explained without comparing each word with each other", () => {
  const many = (word: string, rule: number) => Array.from({ length: 50 }, (_, index) => `${word}:${rule}-${index}`);
  const rules = Array.from({ length: 500 }, (_, rule) => ({
    deny: "chat",
    to: many("person", rule),
    in: "everywhere",
  }));
  // Reading the words of a list is counted, so that the test does not depend on the clock.
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
