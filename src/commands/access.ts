import { type AccessRule, accessRule } from "../config/policy/access.ts";
import { MAX_CHAT_RULES } from "../policy/chat-rules.ts";
import { describePermission, describeRule, type Permission } from "../policy/rules.ts";
import type { Actor } from "../port/catalogue.ts";
import type { CommandEvent, ReplyAddress } from "../port/events.ts";
import { toTurnId } from "../port/ids.ts";
import { isStoreOutage } from "../store/outage.ts";
import { quoteName } from "../text/quote-name.ts";
import { type Command, type CommandDeps, NOT_KEPT, ONLY_ADMINS, postNotice } from "./command.ts";

const HOW =
  "For example: `/access deny pictures to guests in here`. Start with `allow` or `deny`, then say what (`everything`, `chat`, `pictures`, `files`, `tools`, `models`, `settings`, `model:NAME`, `tool:NAME`, `server:NAME`), `to` whom (`everybody`, `members`, `guests`, `external`, `admins`, `person:ID`, `group:ID`, `role:ID`, `workspace:ID`, or a mention) and `in` which place (`here`, `direct`, `channels`, `page`, `channel:ID`, `category:ID`, `workspace:ID`, `platform:NAME`). `/access remove` and a rule's name removes that rule.";
/** The permissions that a plain `/access` lists. */
const USUAL: readonly Permission[] = ["chat", "pictures", "files", "settings"];
const PERMISSION = /^(?:chat|pictures|files|settings|(?:model|tool):\S+)$/;
const ID_CHARS = 5;
/** A list of this length fits into one message on every platform. */
const MAX_LIST_CHARS = 1_500;
const FIND_MS = 5_000;

/** `/access` shows what the asker can do and why. Admins list, add and remove rules. */
export const ACCESS: Command = {
  name: "access",
  description: "Show what you can do here; admins: list, allow, deny, remove, why.",
  usage: "list, allow, deny, remove, or why @someone",
  namesPeople: true,
  create(deps) {
    const { access, chatRules } = deps;

    async function describeOwn(event: CommandEvent): Promise<string> {
      const judge = await access.judge();
      const lines = USUAL.map((permission) => {
        const { isAllowed, reason } = judge(event, permission);
        return `- You ${isAllowed ? "can" : "can't"} ${describePermission(permission)}: ${reason}.`;
      });
      return [access.isAdmin(event) ? "You're one of my admins." : "", ...lines].filter(Boolean).join("\n");
    }

    async function list(): Promise<string> {
      const rules = await chatRules.read();
      if (rules.length === 0) return `No rules are set in the chat. The policy file decides. ${HOW}`;
      const lines = rules.map(({ id, rule }) => `- \`${id}\`: ${describeRule(rule)}`);
      let room = MAX_LIST_CHARS;
      const shown = lines.filter((line) => (room -= line.length + 1) > 0);
      const rest = lines.length - shown.length;
      return [
        "I check these rules in this order, then the policy file:",
        ...shown,
        ...(rest > 0 ? [`and ${rest} more.`] : []),
      ].join("\n");
    }

    async function add(event: CommandEvent, words: string): Promise<string> {
      const rule = readRule(words, event.reply);
      if (typeof rule === "string") return `I changed nothing: ${rule}. ${HOW}`;
      // The same event always creates the same rule id, so a retry adds nothing.
      const id = toTurnId(event.key)
        .replace(/[^a-z0-9]/gi, "")
        .slice(0, ID_CHARS)
        .toLowerCase();
      const isAdded = await chatRules.add({ id, rule });
      if (!isAdded) return `There are already ${MAX_CHAT_RULES} rules. Remove some, or move them to the policy file.`;
      await deps.audit.note({ event, what: "access", after: describeRule(rule) });
      return `From now on: ${describeRule(rule)}. \`/access remove ${id}\` undoes this.`;
    }

    async function remove(event: CommandEvent, id: string): Promise<string> {
      const removed = await chatRules.remove(id.toLowerCase());
      if (removed === undefined) return `There is no rule ${quoteName(id)}. \`/access list\` shows them all.`;
      await deps.audit.note({ event, what: "access", before: describeRule(removed.rule) });
      return `Removed:  ${describeRule(removed.rule)}.`;
    }

    async function explain(event: CommandEvent, words: readonly string[], signal: AbortSignal): Promise<string> {
      const permission = words.find((word) => PERMISSION.test(word)) as Permission | undefined;
      const permissions = permission === undefined ? USUAL : [permission];
      const named = words.find((word) => !PERMISSION.test(word));
      const personId = named === undefined ? undefined : readPerson(named);
      if (named !== undefined && personId === undefined) {
        return `I don't know who ${quoteName(named)} is. Mention them with @, or write \`person:ID\`.`;
      }
      const by = personId === undefined ? event : await findActor(deps, event, personId, signal);
      if (by === undefined) return `No one here has the id ${quoteName(personId ?? "")}.`;
      const judge = await access.judge();
      const name = personId === undefined ? "You" : quoteName(by.author.name);
      const sentences = permissions.map((permission) => {
        const { isAllowed, reason } = judge(by, permission);
        return `${name} ${isAllowed ? "can" : "can't"} ${describePermission(permission)}, because ${reason}.`;
      });
      return sentences.join("\n");
    }

    async function answer(event: CommandEvent, signal: AbortSignal): Promise<string> {
      const [verb = "", ...words] = event.text.trim().split(/\s+/);
      const rest = event.text.trim().slice(verb.length).trim();
      switch (verb.toLowerCase()) {
        case "":
          return access.isAdmin(event) ? `${await describeOwn(event)}\n\n${await list()}` : describeOwn(event);
        case "why":
          // Only admins can ask about other people's permissions.
          if (words.some((word) => !PERMISSION.test(word)) && !access.isAdmin(event)) return ONLY_ADMINS;
          return explain(event, words, signal);
      }
      if (!access.isAdmin(event)) return ONLY_ADMINS;
      switch (verb.toLowerCase()) {
        case "list":
          return list();
        case "allow":
        case "deny":
          return add(event, `${verb.toLowerCase()} ${rest}`);
        case "remove":
          return remove(event, words[0] ?? "");
        default:
          return HOW;
      }
    }

    return async (event, sink, signal) => {
      const text = await answer(event, signal).catch((error: unknown) => {
        signal.throwIfAborted();
        if (!isStoreOutage(error)) throw error;
        return NOT_KEPT;
      });
      await postNotice(sink, event, text, signal);
    };
  },
};

/** Parses a rule. If the rule is invalid, returns the reason as part of a sentence. */
function readRule(words: string, here: ReplyAddress): AccessRule | string {
  const [verb = "", ...rest] = words.split(/\s+/);
  const at = (names: readonly string[]) => {
    const found = rest.findIndex((word) => names.includes(word.toLowerCase()));
    return found < 0 ? rest.length : found;
  };
  const inAt = at(["in"]);
  const toAt = Math.min(at(["to", "for"]), inAt);
  const [what, to, place] = [rest.slice(0, toAt), rest.slice(toAt + 1, inAt), rest.slice(inAt + 1)].map(toSelectors);
  const given = {
    [verb]: what,
    ...(toAt < inAt && { to: to?.map(toWho) }),
    ...(inAt < rest.length && { in: place?.map((one) => toWhere(one, here)) }),
  };
  const { success, data, error } = accessRule.safeParse(given);
  return success
    ? data
    : error.issues.map(({ path, message }) => `${String(path[0] ?? "a rule")} ${message}`).join("; ");
}

function toSelectors(words: readonly string[]): string[] {
  return words.flatMap((word) => word.split(",")).filter((word) => word !== "" && word.toLowerCase() !== "and");
}

/** Converts a mention in a platform's syntax into a policy selector. */
function toWho(word: string): string {
  const person = /^<@!?(\w+)(?:\|[^>]*)?>$/.exec(word)?.[1];
  const role = /^<@&(\d+)>$/.exec(word)?.[1];
  const group = /^<!subteam\^(\w+)(?:\|[^>]*)?>$/.exec(word)?.[1];
  if (person !== undefined) return `person:${person}`;
  if (role !== undefined) return `role:${role}`;
  return group === undefined ? word : `group:${group}`;
}

function toWhere(word: string, { channelId }: ReplyAddress): string {
  if (word.toLowerCase() === "here") return `channel:${channelId}`;
  const channel = /^<#(\w+)(?:\|[^>]*)?>$/.exec(word)?.[1];
  return channel === undefined ? word : `channel:${channel}`;
}

function readPerson(word: string): string | undefined {
  const who = toWho(word);
  return who.startsWith("person:") ? who.slice("person:".length) : undefined;
}

async function findActor(
  { adapterOf }: CommandDeps,
  { reply }: CommandEvent,
  id: string,
  signal: AbortSignal,
): Promise<Actor | undefined> {
  const adapter = adapterOf(reply.platform);
  if (adapter.findAuthor === undefined) return { author: { id, name: id }, reply };
  const bound = AbortSignal.any([signal, AbortSignal.timeout(FIND_MS)]);
  const author = await adapter.findAuthor(id, reply, bound);
  return author && { author, reply };
}
