import type { Keyv } from "keyv";
import type { Logger } from "pino";
import { z } from "zod";
import { type AccessRule, accessRule } from "../config/policy/access.ts";
import type { Stores } from "../store/keyv.ts";

const NAMESPACE = "access";
const KEY = "rules";
/** The rules are reloaded after this time, so another process's change applies at most this much later. */
const FRESH_MS = 1_000;
export const MAX_CHAT_RULES = 100;

export interface ChatRule {
  /** A short id that does not depend on other rules. */
  id: string;
  rule: AccessRule;
}

const stored = z.object({ v: z.literal(1), rules: z.array(z.object({ id: z.string(), rule: accessRule })) });

/** The rules that admins set in the chat, in the order of checking: newest first. */
export interface ChatRules {
  /** Never rejects. If the store is unavailable, resolves to the last known rules. */
  read(): Promise<readonly ChatRule[]>;
  /**
   * Resolves to false if there are too many rules. Adding the same id again changes nothing. Rejects if the store does
   * not accept the rule.
   */
  add(rule: ChatRule): Promise<boolean>;
  /**
   * Resolves to the removed rule; undefined if no rule has this id. Rejects if the store does not accept the change.
   */
  remove(id: string): Promise<ChatRule | undefined>;
  /** Returns the same rules, but writes changes with `stores`. */
  under(stores: Pick<Stores, "inTurn">): ChatRules;
}

export interface ChatRulesOptions extends Pick<Stores, "open" | "inTurn"> {
  log: Logger;
  now(): number;
}

type Act<T> = (rules: readonly ChatRule[]) => { rules: readonly ChatRule[]; result: T };

export function createChatRules({ log, now, ...stores }: ChatRulesOptions): ChatRules {
  const keyv = stores.open(NAMESPACE);
  let known: readonly ChatRule[] = [];
  let readAt = -Infinity;
  let isDamageLogged = false;

  async function load(keyv: Keyv): Promise<readonly ChatRule[]> {
    const value: unknown = await keyv.get(KEY);
    const { success, data } = stored.safeParse(value ?? { v: 1, rules: [] });
    if (success) return data.rules;
    if (!isDamageLogged) log.error("the access rules set in chat cannot be parsed and are ignored");
    isDamageLogged = true;
    return [];
  }

  function learn(rules: readonly ChatRule[]): readonly ChatRule[] {
    readAt = now();
    known = rules;
    return rules;
  }

  function change<T>(inTurn: Stores["inTurn"], act: Act<T>): Promise<T> {
    return inTurn(`${NAMESPACE}:${KEY}`, async (open) => {
      const keyv = open(NAMESPACE);
      const before = await load(keyv);
      const { rules, result } = act(before);
      // No TTL, because a rule must not expire.
      if (rules !== before) await keyv.set(KEY, { v: 1, rules });
      learn(rules);
      return result;
    });
  }

  const under: ChatRules["under"] = ({ inTurn }) => ({
    under,
    async read() {
      if (now() - readAt < FRESH_MS) return known;
      try {
        return learn(await load(keyv));
      } catch (err) {
        log.warn({ err }, "the access rules set in chat could not be read; the last known rules stay in effect");
        return learn(known);
      }
    },
    add: (rule) =>
      change(inTurn, (rules) => {
        if (rules.some(({ id }) => id === rule.id)) return { rules, result: true };
        if (rules.length >= MAX_CHAT_RULES) return { rules, result: false };
        return { rules: [rule, ...rules], result: true };
      }),
    remove: (id) =>
      change(inTurn, (rules) => {
        const found = rules.find((one) => one.id === id);
        return { rules: found === undefined ? rules : rules.filter((one) => one !== found), result: found };
      }),
  });
  return under(stores);
}
