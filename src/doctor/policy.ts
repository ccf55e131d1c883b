import type { AccessPolicy, AccessRule } from "../config/policy/access.ts";
import { describeQuotas, findUnpriced } from "../config/policy/money.ts";
import type { Policy } from "../config/policy/policy-file.ts";
import { namedGroupsOf } from "../policy/access.ts";
import { describeRule, toList } from "../policy/rules.ts";
import type { Finding } from "../port/finding.ts";

/** The platforms' formats for ids of user groups and roles. */
const GROUP_ID = /^(?:S[A-Z0-9]+|\d+)$/;
/** Each of these words matches everything in its part of a rule. */
const ALL = new Set(["everybody", "everywhere", "everything"]);
/** Each of these words matches all names of one kind. */
const KINDS: Readonly<Record<string, RegExp>> = {
  models: /^model:/,
  tools: /^(?:tool|server):/,
  channels: /^channel:/,
};

interface NamedModel {
  variable: string;
  model: string;
}

/** Describes the current policy. `warnings` are sentences about changes of the policy file. */
export function checkPolicy(
  policy: Policy,
  named: readonly NamedModel[] = [],
  warnings: readonly string[] = [],
): Finding[] {
  const { access = {}, models } = policy;
  const limits = describeQuotas(policy);
  const lost = warnings.map((what) => ({ ok: false, what, fix: "Fix the file." }));
  const open = [
    ...((access.rules ?? []).length + (models?.offered ?? []).length > 0
      ? []
      : ["no rules: everyone can do everything"]),
    ...(policy.quotas === undefined ? ["no quotas: nothing is limited"] : []),
    ...(limits.length === 0 ? [] : [`these limits: ${limits.join(", ")}`]),
  ];
  const told = open.map((what) => ({ ok: true, what: `The policy has ${what}.` }));
  return [...lost, ...told, ...checkPrices(policy, named), ...checkAccess(access)];
}

function checkPrices(policy: Policy, named: readonly NamedModel[]): Finding[] {
  const { offered = [], cheaper } = policy.models ?? {};
  const inFile = [...offered.flatMap(({ models }) => models.filter((one) => !one.includes("*"))), cheaper?.model];
  const models = [...named, ...inFile.flatMap((model) => (model === undefined ? [] : [{ variable: "model", model }]))];
  return findUnpriced(policy, models).map(({ variable, model }) => ({
    ok: false,
    what: `The policy limits money but has no price for ${variable} ${model}: the limit works only if the gateway reports the cost of each request.`,
    fix: 'Add its price under prices, or one for "*"; docs/quotas.md starts with an example.',
  }));
}

/** Describes the policy's `access` section, and finds rules that can never match. */
function checkAccess(access: AccessPolicy): Finding[] {
  const { admins = [], rules = [] } = access;
  const named: Finding =
    admins.length === 0
      ? {
          ok: true,
          what: "The policy names no admins: no one can change the rules in chat, and rules set there earlier have no effect.",
        }
      : { ok: true, what: `Admins, who can change the rules with /access: ${admins.join(", ")}.` };
  const compared = rules.map((rule) => ({ rule, parts: toParts(rule) }));
  const told: Finding[] = compared.map(({ rule, parts }, index) => {
    const earlier = compared.slice(0, index).findIndex((other) => covers(other.parts, parts));
    const what = `Rule ${index + 1}: ${describeRule(rule)}`;
    if (earlier < 0) return { ok: true, what: `${what}.` };
    return {
      ok: false,
      what: `${what}. It can never match, because rule ${earlier + 1} (${describeRule(rules[earlier] ?? rule)}) already decides all of its cases.`,
      fix: "Move it before that rule, or remove it.",
    };
  });
  const names = namedGroupsOf({ ...access, rules }).filter((id) => !GROUP_ID.test(id));
  const unknown: Finding[] = names.map((name) => ({
    ok: false,
    what: `The policy names a group or role "${name}", which is not an id: it matches no one.`,
    fix: "Write its id instead; docs/policy.md says where to find it.",
  }));
  const rest = { ok: true, what: "If no rule matches, the defaults without a policy apply." };
  return [named, ...unknown, ...told, ...(rules.length > 0 ? [rest] : [])];
}

/** A rule's permissions, people and channels, in a form that can be compared with another rule. */
type Parts = ReadonlyArray<{ words: readonly string[]; has: ReadonlySet<string>; kinds: readonly RegExp[] }>;

function toParts(rule: AccessRule): Parts {
  const lists = [rule.allow ?? rule.deny, rule.to ?? "everybody", rule.in ?? "everywhere"].map(toList);
  return lists.map((words) => {
    const kinds = words.flatMap((word) => (ALL.has(word) ? [/^/] : (KINDS[word] ?? [])));
    return { words, has: new Set(words), kinds };
  });
}

/** True if the first rule decides every case of the second rule. */
function covers(first: Parts, second: Parts): boolean {
  return first.every(({ has, kinds }, index) =>
    second[index]?.words.every((word) => has.has(word) || kinds.some((kind) => kind.test(word))),
  );
}
