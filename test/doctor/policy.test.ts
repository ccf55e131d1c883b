import { expect, test } from "vitest";
import { checkAccess } from "../../src/doctor/policy.ts";

test("a rule that can never match is named, with the rule that stands before it", () => {
  const findings = checkAccess({
    admins: ["person:1"],
    rules: [
      { deny: "pictures", to: "guests" },
      { deny: ["tools", "models"] },
      { allow: "tool:shop__count", to: "guests" },
      { allow: ["pictures", "chat"], to: "guests" },
      { deny: "pictures", to: "guests", in: "channel:C1" },
    ],
  });
  expect(findings.filter(({ ok }) => !ok).map(({ what }) => what)).toEqual([
    "Rule 3: allow tool:shop__count to guests. It can never match, because rule 2 (deny tools, models) decides everything that it is about.",
    "Rule 5: deny pictures to guests in channel:C1. It can never match, because rule 1 (deny pictures to guests) decides everything that it is about.",
  ]);
  expect(findings[0]?.what).toBe("Admins, who may change the rules with /access: person:1.");
});

test("a group or role that is named by its name is one that matches nobody", () => {
  const findings = checkAccess({
    admins: ["group:S024BE7LH"],
    rules: [{ deny: "chat", to: ["role:Mods", "role:118"] }],
  });
  expect(findings.filter(({ ok }) => !ok).map(({ what }) => what)).toEqual([
    'The policy names a group or role "Mods", which is no id: it matches nobody.',
  ]);
});

test("a policy without admins says what follows from that", () => {
  expect(checkAccess({})).toEqual([{ ok: true, what: expect.stringContaining("names no admins") }]);
});
