import type { AccessPolicy, AccessRule } from "../config/policy/access.ts";
import type { Policy } from "../config/policy/policy-file.ts";
import type { Actor } from "../port/catalogue.ts";
import type { Author, ReplyAddress } from "../port/events.ts";
import type { ChatRule, ChatRules } from "./chat-rules.ts";
import {
  describePermission,
  describeRule,
  isAbout,
  isFor,
  isWho,
  type Permission,
  toList,
  toMatching,
} from "./rules.ts";

const NOT_A_MANAGER = "Only this channel's managers can change that.";

/** A decision and its reason: a rule from the chat, a rule in the policy file, or the default. */
export interface Decision {
  isAllowed: boolean;
  /** Completes "because", for example "rule 2 in the policy file says: deny pictures to guests". */
  reason: string;
  /** A sentence for the refused person: what they can't do, and who can change that. */
  refusal: string;
}

/** Decides by the rules that applied when the judge was created. */
export type Judge = (by: Actor, permission: Permission) => Decision;

/** Decides who can do what, and where. No other module makes this decision. */
export interface Access {
  /**
   * Checks the rules from the chat, then the rules in the policy file; the first match decides. By default everything
   * is permitted, but only the channel's managers can change settings. Admins can always change settings. Never
   * rejects.
   */
  judge(): Promise<Judge>;
  may(by: Actor, permission: Permission): Promise<boolean>;
  /** Resolves to a sentence for the person if the permission is missing, otherwise to undefined. */
  findRefusal(by: Actor, permission: Permission): Promise<string | undefined>;
  isAdmin(by: Actor): boolean;
  /** Groups and roles in the rules or among the admins. Only a platform knows their members. */
  namedGroups(): Promise<readonly string[]>;
}

/** True if the person can change the channel's settings. Everyone can if the platform does not say who can. */
export function mayConfigure({ mayConfigure }: Author): boolean {
  return mayConfigure !== false;
}

export interface AccessOptions {
  policy(): Policy;
  chatRules: Pick<ChatRules, "read">;
}

export function createAccess({ policy, chatRules }: AccessOptions): Access {
  async function judge(): Promise<Judge> {
    const { access = {} } = policy();
    // Without admins, the rules from the chat do not apply, because no one could remove these rules.
    const own = (access.admins ?? []).length > 0 ? await chatRules.read() : [];
    const known = new WeakMap<Author, { reply: ReplyAddress; applying: Applying }>();
    return (by, permission) => {
      const { author, reply } = by;
      let entry = known.get(author);
      if (entry?.reply !== reply) entry = { reply, applying: findApplying(access, own, by) };
      known.set(author, entry);
      return decideAmong(entry.applying, access, by, permission);
    };
  }

  return {
    judge,
    async namedGroups() {
      const { access = {}, models: { offered = [] } = {} } = policy();
      const { admins = [], rules = [] } = access;
      const chat = admins.length > 0 ? (await chatRules.read()).map(({ rule }) => rule) : [];
      return namedGroupsOf({ ...access, rules: [...rules, ...chat, ...offered] });
    },
    may: async (by, permission) => (await judge())(by, permission).isAllowed,
    async findRefusal(by, permission) {
      const { isAllowed, refusal } = (await judge())(by, permission);
      return isAllowed ? undefined : refusal;
    },
    isAdmin: (by) => isAdminOf(policy().access ?? {}, by),
  };
}

/** The rules that apply to one person in one channel. A judge finds them once and uses them for all permissions. */
interface Applying {
  isAdmin: boolean;
  chat: readonly ChatRule[];
  /** The policy file's rules with their numbers, starting at 1. */
  file: ReadonlyArray<{ rule: AccessRule; number: number }>;
}

function findApplying(file: AccessPolicy, chat: readonly ChatRule[], by: Actor): Applying {
  const isAdmin = isAdminOf(file, by);
  const numbered = (file.rules ?? []).map((rule, index) => ({ rule, number: index + 1 }));
  return {
    isAdmin,
    chat: chat.filter(({ rule }) => isFor(rule, by, isAdmin)),
    file: numbered.filter(({ rule }) => isFor(rule, by, isAdmin)),
  };
}

export function decide(file: AccessPolicy, chat: readonly ChatRule[], by: Actor, permission: Permission): Decision {
  return decideAmong(findApplying(file, chat, by), file, by, permission);
}

function decideAmong(applying: Applying, file: AccessPolicy, by: Actor, permission: Permission): Decision {
  const { isAdmin } = applying;
  const toDecision = (isAllowed: boolean, reason: string, because = whomToAsk(file)): Decision => {
    const hint = "`/access` shows what you can do.";
    return { isAllowed, reason, refusal: `You can't ${describePermission(permission)}. ${because} ${hint}` };
  };
  if (permission === "settings" && isAdmin) return toDecision(true, "admins in the policy file always can");
  const own = applying.chat.find(({ rule }) => isAbout(rule, permission));
  const ofFile = own === undefined ? applying.file.find(({ rule }) => isAbout(rule, permission)) : undefined;
  const rule = own?.rule ?? ofFile?.rule;
  if (rule !== undefined) {
    const name = own === undefined ? `rule ${ofFile?.number} in the policy file` : `rule ${own.id} set in chat`;
    const words = describeRule(toMatching(rule, by, permission, isAdmin));
    return toDecision(rule.allow !== undefined, `${name} says: ${words}`, rule.because);
  }
  if (permission !== "settings") return toDecision(true, "no rule says otherwise");
  // The default if no rule matches.
  return by.author.mayConfigure === false
    ? {
        isAllowed: false,
        reason: "only this channel's managers can, and no rule says otherwise",
        refusal: NOT_A_MANAGER,
      }
    : toDecision(true, "this channel's managers can, and no rule says otherwise");
}

interface Named extends Pick<AccessPolicy, "admins"> {
  rules?: ReadonlyArray<{ to?: AccessRule["to"] | undefined }>;
}

/** Returns the ids of the groups and roles in a policy, each once. */
export function namedGroupsOf({ admins = [], rules = [] }: Named): string[] {
  const named = [...admins, ...rules.flatMap(({ to }) => toList(to))];
  return [...new Set(named.flatMap((who) => /^(?:group|role):(.+)$/.exec(who)?.[1] ?? []))];
}

export function isAdminOf({ admins = [] }: AccessPolicy, by: Actor): boolean {
  return admins.some((who) => isWho(who, by, false));
}

function whomToAsk({ admins = [] }: AccessPolicy): string {
  return admins.length === 0 ? "Ask my operator." : "An admin can change that with `/access`.";
}
