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

const NOT_A_MANAGER = "Only people who manage this channel may change that.";

/** A decision and its ground: a rule of the chat, a rule of the file, or the default. */
export interface Decision {
  isAllowed: boolean;
  /** Follows "because": "rule 2 of the policy file says: deny pictures to guests". */
  reason: string;
  /** For those who are refused: what they may not do, and whom to ask. */
  refusal: string;
}

/** Decides by the rules as they were at one moment. */
export type Judge = (by: Actor, permission: Permission) => Decision;

/** Says who may do what where. The only place where that is decided. */
export interface Access {
  /**
   * Asks the chat's rules, then the file's; the first match decides. By default everything is allowed, and settings to
   * managers of the channel. Admins may always change settings. Never rejects.
   */
  judge(): Promise<Judge>;
  may(by: Actor, permission: Permission): Promise<boolean>;
  /** Resolves to the sentence for somebody who may not; undefined: they may. */
  findRefusal(by: Actor, permission: Permission): Promise<string | undefined>;
  isAdmin(by: Actor): boolean;
  /** Groups and roles that the rules or the admins are named by: what a platform has to look up of people. */
  namedGroups(): Promise<readonly string[]>;
}

export interface AccessOptions {
  policy(): Policy;
  chatRules: Pick<ChatRules, "read">;
}

export function createAccess({ policy, chatRules }: AccessOptions): Access {
  async function judge(): Promise<Judge> {
    const { access = {} } = policy();
    // Without admins nobody could take back what was set in the chat.
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

/** The rules for one person at one place. A judge finds them once, however many permissions it is asked about. */
interface Applying {
  isAdmin: boolean;
  chat: readonly ChatRule[];
  /** Rules of the file with their numbers, from 1. */
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

/** Pure. */
export function decide(file: AccessPolicy, chat: readonly ChatRule[], by: Actor, permission: Permission): Decision {
  return decideAmong(findApplying(file, chat, by), file, by, permission);
}

function decideAmong(applying: Applying, file: AccessPolicy, by: Actor, permission: Permission): Decision {
  const { isAdmin } = applying;
  const toDecision = (isAllowed: boolean, reason: string, because = whomToAsk(file)): Decision => {
    const hint = "`/access` says what you may do.";
    return { isAllowed, reason, refusal: `You may not ${describePermission(permission)}. ${because} ${hint}` };
  };
  if (permission === "settings" && isAdmin) return toDecision(true, "admins of the policy file always may");
  const own = applying.chat.find(({ rule }) => isAbout(rule, permission));
  const ofFile = own === undefined ? applying.file.find(({ rule }) => isAbout(rule, permission)) : undefined;
  const rule = own?.rule ?? ofFile?.rule;
  if (rule !== undefined) {
    const name = own === undefined ? `rule ${ofFile?.number} of the policy file` : `rule ${own.id} of the chat`;
    const said = describeRule(toMatching(rule, by, permission, isAdmin));
    return toDecision(rule.allow !== undefined, `${name} says: ${said}`, rule.because);
  }
  if (permission !== "settings") return toDecision(true, "no rule says otherwise");
  // As before there was a policy.
  return by.author.mayConfigure === false
    ? {
        isAllowed: false,
        reason: "no rule allows it, and only people who manage this channel may",
        refusal: NOT_A_MANAGER,
      }
    : toDecision(true, "no rule says otherwise, and people who manage this channel may");
}

interface Named extends Pick<AccessPolicy, "admins"> {
  rules?: ReadonlyArray<{ to?: AccessRule["to"] | undefined }>;
}

/** Ids of the groups and roles that a policy names, each once. */
export function namedGroupsOf({ admins = [], rules = [] }: Named): string[] {
  const named = [...admins, ...rules.flatMap(({ to }) => toList(to))];
  return [...new Set(named.flatMap((who) => /^(?:group|role):(.+)$/.exec(who)?.[1] ?? []))];
}

export function isAdminOf({ admins = [] }: AccessPolicy, by: Actor): boolean {
  return admins.some((who) => isWho(who, by, false));
}

function whomToAsk({ admins = [] }: AccessPolicy): string {
  return admins.length === 0 ? "Ask whoever runs me." : "Ask an admin of mine, who can change that with `/access`.";
}
