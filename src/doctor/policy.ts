import type { AccessPolicy, AccessRule } from "../config/policy/access.ts";
import { namedGroupsOf } from "../policy/access.ts";
import { describeRule, toList } from "../policy/rules.ts";
import type { Finding } from "../port/finding.ts";

/** Ids of user groups and of roles, as the platforms make them. */
const GROUP_ID = /^(?:S[A-Z0-9]+|\d+)$/;
/** Words for everything of one part of a rule. */
const ALL = new Set(["everybody", "everywhere", "everything"]);
/** Words that stand for all things of a kind, which others name one by one. */
const KINDS: Readonly<Record<string, RegExp>> = {
  models: /^model:/,
  tools: /^(?:tool|server):/,
  channels: /^channel:/,
};

/** Explains the section `access` of the policy, and finds the rules that can never match. */
export function checkAccess(access: AccessPolicy): Finding[] {
  const { admins = [], rules = [] } = access;
  const named: Finding =
    admins.length === 0
      ? {
          ok: true,
          what: "The policy names no admins: nobody can change who may do what in the chat, and rules set there before do not hold.",
        }
      : { ok: true, what: `Admins, who may change the rules with /access: ${admins.join(", ")}.` };
  const told: Finding[] = rules.map((rule, index) => {
    const earlier = rules.findIndex((other, at) => at < index && covers(other, rule));
    const what = `Rule ${index + 1}: ${describeRule(rule)}`;
    if (earlier < 0) return { ok: true, what: `${what}.` };
    return {
      ok: false,
      what: `${what}. It can never match, because rule ${earlier + 1} (${describeRule(rules[earlier] ?? rule)}) decides everything that it is about.`,
      fix: "Put it before that rule, or take it out.",
    };
  });
  const names = namedGroupsOf({ ...access, rules }).filter((id) => !GROUP_ID.test(id));
  const unknown: Finding[] = names.map((name) => ({
    ok: false,
    what: `The policy names a group or role "${name}", which is no id: it matches nobody.`,
    fix: "Write the id in its place; docs/policy.md says where it is to be found.",
  }));
  const rest = { ok: true, what: "Whatever no rule is about is as without a policy." };
  return [named, ...unknown, ...told, ...(rules.length > 0 ? [rest] : [])];
}

/** True when the first rule decides everything that the second is about. */
function covers(first: AccessRule, second: AccessRule): boolean {
  return (
    coversPart(toList(first.allow ?? first.deny), toList(second.allow ?? second.deny)) &&
    coversPart(toList(first.to ?? "everybody"), toList(second.to ?? "everybody")) &&
    coversPart(toList(first.in ?? "everywhere"), toList(second.in ?? "everywhere"))
  );
}

function coversPart(wide: readonly string[], narrow: readonly string[]): boolean {
  return narrow.every((one) =>
    wide.some((other) => other === one || ALL.has(other) || KINDS[other]?.test(one) === true),
  );
}
