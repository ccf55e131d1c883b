import type { AccessPolicy, AccessRule } from "../config/policy/access.ts";
import type { Policy } from "../config/policy/policy-file.ts";
import type { Actor } from "../port/catalogue.ts";
import type { Author } from "../port/events.ts";
import type { ChatRule, ChatRules } from "./chat-rules.ts";
import { type Deed, describeDeed, describeRule, isWho, matches } from "./rules.ts";

/** What was decided, and by what: a rule of the chat, one of the file, or what holds without a rule. */
export interface Decision {
  isAllowed: boolean;
  /** One sentence, after "because": "rule 2 of the policy file says: deny pictures to guests". */
  reason: string;
  /** Said to those who are refused, as the rule has it. */
  because?: string;
}

/** Says who may do what where. The only place where that is decided. */
export interface Access {
  /**
   * The rules of the chat come first, then those of the file, and of them all the first that matches; where none does,
   * everybody may do everything, and change settings if the platform lets them manage the channel. Admins may always
   * change settings. Never rejects.
   */
  decide(by: Actor, deed: Deed): Promise<Decision>;
  may(by: Actor, deed: Deed): Promise<boolean>;
  /** Named by the policy file. */
  isAdmin(by: Actor): boolean;
  /** The sentence for somebody who was refused: what, and whom to ask. */
  describeRefusal(deed: Deed, decision: Decision): string;
}

export interface AccessOptions {
  policy(): Policy;
  chatRules: Pick<ChatRules, "read">;
}

export function createAccess({ policy, chatRules }: AccessOptions): Access {
  const file = (): AccessPolicy => policy().access ?? {};

  function isAdmin(by: Actor): boolean {
    return isAdminOf(file(), by);
  }

  async function decide(by: Actor, deed: Deed): Promise<Decision> {
    const admin = isAdmin(by);
    if (deed === "settings" && admin) return { isAllowed: true, reason: "admins of the policy file always may" };
    // Without admins nobody could take back what was set in the chat.
    const own = (file().admins ?? []).length > 0 ? await chatRules.read() : [];
    const found = own.find(({ rule }) => matches(rule, by, deed, admin));
    if (found !== undefined) return toDecision(found.rule, describeChatRule(found));
    const rules = file().rules ?? [];
    const index = rules.findIndex((rule) => matches(rule, by, deed, admin));
    const rule = rules[index];
    if (rule !== undefined) return toDecision(rule, `rule ${index + 1} of the policy file says: ${describeRule(rule)}`);
    return deed === "settings" ? decideByPlatform(by.author) : { isAllowed: true, reason: "no rule says otherwise" };
  }

  return {
    decide,
    may: async (by, deed) => (await decide(by, deed)).isAllowed,
    isAdmin,
    describeRefusal(deed, { because }) {
      const whom = because ?? whomToAsk(file());
      return `You may not ${describeDeed(deed)}. ${whom} \`/access\` says what you may do.`;
    },
  };
}

/** Decides on nothing but a policy: for those who only look at it. */
export function isAdminOf({ admins = [] }: AccessPolicy, by: Actor): boolean {
  return admins.some((who) => isWho(who, by, false));
}

function toDecision(rule: AccessRule, reason: string): Decision {
  return { isAllowed: rule.allow !== undefined, reason, ...(rule.because !== undefined && { because: rule.because }) };
}

function describeChatRule({ id, rule }: ChatRule): string {
  return `rule ${id} of the chat says: ${describeRule(rule)}`;
}

/** As before there was a policy. */
function decideByPlatform({ mayConfigure }: Author): Decision {
  return mayConfigure === false
    ? {
        isAllowed: false,
        reason: "no rule allows it, and they do not manage this channel",
        because: "Only people who manage this channel may.",
      }
    : { isAllowed: true, reason: "no rule says otherwise, and the platform lets them manage this channel" };
}

function whomToAsk({ admins = [] }: AccessPolicy): string {
  return admins.length === 0 ? "Ask whoever runs me." : "Ask an admin of mine, who can change that with `/access`.";
}
