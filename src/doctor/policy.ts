import type { AccessPolicy, AccessRule } from "../config/policy/access.ts";
import type { Policy } from "../config/policy/policy-file.ts";
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

/** Explains the policy in force. `warnings` are sentences about changes of its file. */
export function checkPolicy({ access = {}, quotas, models }: Policy, warnings: readonly string[] = []): Finding[] {
  const lost = warnings.map((what) => ({ ok: false, what, fix: "Look at the file, and correct it." }));
  const open = [
    ...((access.rules ?? []).length + (models?.offered ?? []).length > 0
      ? []
      : ["no rules: everybody may do everything"]),
    ...(quotas === undefined ? ["no quotas: nothing is limited"] : []),
  ];
  return [...lost, ...open.map((what) => ({ ok: true, what: `The policy has ${what}.` })), ...checkAccess(access)];
}

/** Explains the section `access` of the policy, and finds the rules that can never match. */
function checkAccess(access: AccessPolicy): Finding[] {
  const { admins = [], rules = [] } = access;
  const named: Finding =
    admins.length === 0
      ? {
          ok: true,
          what: "The policy names no admins: nobody can change who may do what in the chat, and rules set there before do not hold.",
        }
      : { ok: true, what: `Admins, who may change the rules with /access: ${admins.join(", ")}.` };
  const compared = rules.map((rule) => ({ rule, parts: toParts(rule) }));
  const told: Finding[] = compared.map(({ rule, parts }, index) => {
    const earlier = compared.slice(0, index).findIndex((other) => covers(other.parts, parts));
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

/** The parts of a rule, ready to be compared with those of another. */
type Parts = ReadonlyArray<{ words: readonly string[]; has: ReadonlySet<string>; kinds: readonly RegExp[] }>;

function toParts(rule: AccessRule): Parts {
  const lists = [rule.allow ?? rule.deny, rule.to ?? "everybody", rule.in ?? "everywhere"].map(toList);
  return lists.map((words) => {
    const kinds = words.flatMap((word) => (ALL.has(word) ? [/^/] : (KINDS[word] ?? [])));
    return { words, has: new Set(words), kinds };
  });
}

/** True when the first rule decides everything that the second is about. */
function covers(first: Parts, second: Parts): boolean {
  return first.every(({ has, kinds }, index) =>
    second[index]?.words.every((word) => has.has(word) || kinds.some((kind) => kind.test(word))),
  );
}
