import { type AccessRule, accessRule } from "../config/policy/access.ts";
import type { Access } from "../policy/access.ts";
import type { Audit } from "../policy/audit.ts";
import { type ChatRules, MAX_CHAT_RULES } from "../policy/chat-rules.ts";
import { describePermission, describeRule, type Permission } from "../policy/rules.ts";
import type { Adapter } from "../port/adapter.ts";
import type { Actor } from "../port/catalogue.ts";
import type { CommandEvent, ReplyAddress } from "../port/events.ts";
import { toTurnId } from "../port/ids.ts";
import { isStoreOutage } from "../store/outage.ts";
import { quoteName } from "../text/quote-name.ts";
import { type Command, NOT_KEPT, ONLY_ADMINS, postNotice } from "./command.ts";

const HOW =
  "Write `/access deny pictures to guests in here`, or `allow`: what (`everything`, `chat`, `pictures`, `files`, `tools`, `models`, `settings`, `model:NAME`, `tool:NAME`, `server:NAME`), then `to` whom (`everybody`, `members`, `guests`, `external`, `admins`, `person:ID`, `group:ID`, `role:ID`, `workspace:ID`, or a mention), then `in` which place (`here`, `direct`, `channels`, `page`, `channel:ID`, `category:ID`, `workspace:ID`, `platform:NAME`). `/access remove` with a rule's name takes one back.";
/** The permissions that `/access` lists when it is called without words. */
const USUAL: readonly Permission[] = ["chat", "pictures", "files", "settings"];
const PERMISSION = /^(?:chat|pictures|files|settings|(?:model|tool):\S+)$/;
const ID_CHARS = 5;
/** Longest list of rules, so that platforms take it as one message. */
const MAX_LIST_CHARS = 1_500;
const FIND_MS = 5_000;

export interface AccessCommandDeps {
  access: Access;
  chatRules: ChatRules;
  audit: Pick<Audit, "note">;
  adapterOf(platform: string): Pick<Adapter, "findAuthor">;
}

/** `/access`: says what the person may do, and why; admins list, add and remove the rules of the chat. */
export function createAccessCommand(deps: AccessCommandDeps): Command {
  const { access, chatRules } = deps;

  async function describeOwn(event: CommandEvent): Promise<string> {
    const judge = await access.judge();
    const lines = USUAL.map((permission) => {
      const { isAllowed, reason } = judge(event, permission);
      return `- You may ${isAllowed ? "" : "not "}${describePermission(permission)}: ${reason}.`;
    });
    return [access.isAdmin(event) ? "You are an admin of mine." : "", ...lines].filter(Boolean).join("\n");
  }

  async function list(): Promise<string> {
    const rules = await chatRules.read();
    if (rules.length === 0) return `No rules were set in the chat; those of the policy file hold. ${HOW}`;
    const lines = rules.map(({ id, rule }) => `- \`${id}\`: ${describeRule(rule)}`);
    let room = MAX_LIST_CHARS;
    const shown = lines.filter((line) => (room -= line.length + 1) > 0);
    const rest = lines.length - shown.length;
    return ["Asked in this order, before the policy file:", ...shown, ...(rest > 0 ? [`and ${rest} more.`] : [])].join(
      "\n",
    );
  }

  async function add(event: CommandEvent, words: string): Promise<string> {
    const rule = readRule(words, event.reply);
    if (typeof rule === "string") return `I changed nothing: ${rule}. ${HOW}`;
    // The same event makes the same rule, however often it is worked on.
    const id = toTurnId(event.key)
      .replace(/[^a-z0-9]/gi, "")
      .slice(0, ID_CHARS)
      .toLowerCase();
    const isAdded = await chatRules.add({ id, rule });
    if (!isAdded) return `There are ${MAX_CHAT_RULES} rules already. Remove some, or put them into the policy file.`;
    await deps.audit.note({ event, what: "access", after: describeRule(rule) });
    return `From now on: ${describeRule(rule)}. \`/access remove ${id}\` takes it back.`;
  }

  async function remove(event: CommandEvent, id: string): Promise<string> {
    const removed = await chatRules.remove(id.toLowerCase());
    if (removed === undefined) return `There is no rule ${quoteName(id)}. \`/access list\` names those there are.`;
    await deps.audit.note({ event, what: "access", before: describeRule(removed.rule) });
    return `Gone: ${describeRule(removed.rule)}.`;
  }

  async function explain(event: CommandEvent, words: readonly string[], signal: AbortSignal): Promise<string> {
    const asked = words.find((word) => PERMISSION.test(word)) as Permission | undefined;
    const permissions = asked === undefined ? USUAL : [asked];
    const named = words.find((word) => !PERMISSION.test(word));
    const personId = named === undefined ? undefined : readPerson(named);
    if (named !== undefined && personId === undefined) {
      return `I cannot tell whom ${quoteName(named)} means. Mention them with @, or write \`person:ID\`.`;
    }
    const by = personId === undefined ? event : await findActor(deps, event, personId, signal);
    if (by === undefined) return `There is nobody of the id ${quoteName(personId ?? "")} here.`;
    const judge = await access.judge();
    const name = personId === undefined ? "You" : quoteName(by.author.name);
    const sentences = permissions.map((permission) => {
      const { isAllowed, reason } = judge(by, permission);
      return `${name} may ${isAllowed ? "" : "not "}${describePermission(permission)}, because ${reason}.`;
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
        // Only admins may ask what others may do.
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

  return {
    name: "access",
    description: "Says what you may do here; admins: list, allow, deny, remove, why.",
    async run(event, sink, signal) {
      const said = await answer(event, signal).catch((error: unknown) => {
        signal.throwIfAborted();
        if (!isStoreOutage(error)) throw error;
        return NOT_KEPT;
      });
      await postNotice(sink, event, said, signal);
    },
  };
}

/** The rule that people's words are, or what is wrong with them. */
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

/** Mentions as the platforms write them. */
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
  { adapterOf }: AccessCommandDeps,
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
