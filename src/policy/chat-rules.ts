import type { Logger } from "pino";
import { z } from "zod";
import { type AccessRule, accessRule } from "../config/policy/access.ts";
import type { Stores } from "../store/keyv.ts";

const NAMESPACE = "access";
const KEY = "rules";
/** Milliseconds until the rules are read again: changes by other processes take this long to arrive. */
const FRESH_MS = 1_000;
export const MAX_CHAT_RULES = 100;

export interface ChatRule {
  /** Short, and stays the same whatever other rules come and go. */
  id: string;
  rule: AccessRule;
}

const stored = z.object({ v: z.literal(1), rules: z.array(z.object({ id: z.string(), rule: accessRule })) });

/** The rules of the chat, in the order in which they are asked: the newest first. */
export interface ChatRules {
  /** Never rejects: while the store is out of reach, what was read last counts. */
  read(): Promise<readonly ChatRule[]>;
  /** Resolves to whether there was room for it. The same id again changes nothing. Rejects when it could not be kept. */
  add(rule: ChatRule): Promise<boolean>;
  /** Resolves to the rule that is gone; undefined: there was none of that id. Rejects as `add` does. */
  remove(id: string): Promise<ChatRule | undefined>;
}

export interface ChatRulesOptions extends Pick<Stores, "open" | "inTurn"> {
  log: Logger;
  /** Milliseconds. */
  now(): number;
}

export function createChatRules({ open, inTurn, log, now }: ChatRulesOptions): ChatRules {
  const keyv = open(NAMESPACE);
  let known: readonly ChatRule[] = [];
  let readAt = -Infinity;
  let isDamageLogged = false;

  async function load(): Promise<readonly ChatRule[]> {
    const value: unknown = await keyv.get(KEY);
    const { success, data } = stored.safeParse(value ?? { v: 1, rules: [] });
    if (success) return data.rules;
    if (!isDamageLogged) log.error("the rules of access set in the chat cannot be read and count as absent");
    isDamageLogged = true;
    return [];
  }

  function learn(rules: readonly ChatRule[]): readonly ChatRule[] {
    readAt = now();
    known = rules;
    return rules;
  }

  function change<T>(act: (rules: readonly ChatRule[]) => { rules: readonly ChatRule[]; result: T }): Promise<T> {
    return inTurn(`${NAMESPACE}:${KEY}`, async () => {
      const before = await load();
      const { rules, result } = act(before);
      // Kept without a time limit: a rule that nobody has touched for long must not lapse.
      if (rules !== before) await keyv.set(KEY, { v: 1, rules });
      learn(rules);
      return result;
    });
  }

  return {
    async read() {
      if (now() - readAt < FRESH_MS) return known;
      try {
        return learn(await load());
      } catch (err) {
        log.warn({ err }, "the rules of access set in the chat could not be read; those known last count");
        return learn(known);
      }
    },
    add: (rule) =>
      change((rules) => {
        if (rules.some(({ id }) => id === rule.id)) return { rules, result: true };
        if (rules.length >= MAX_CHAT_RULES) return { rules, result: false };
        return { rules: [rule, ...rules], result: true };
      }),
    remove: (id) =>
      change((rules) => {
        const found = rules.find((one) => one.id === id);
        return { rules: found === undefined ? rules : rules.filter((one) => one !== found), result: found };
      }),
  };
}
