import type { AccessRule } from "../config/policy/access.ts";
import type { Actor } from "../port/catalogue.ts";
import type { Author, ReplyAddress } from "../port/events.ts";

/**
 * Something that a person can do. With `files`, the bot reads the person's files; `tool:server__tool` is a server's
 * tool.
 */
export type Permission = "chat" | "pictures" | "files" | "settings" | `model:${string}` | `tool:${string}`;

/** The policy's name for this platform is `page`. */
const PAGE = "local";

export function isFor({ to, in: place }: Pick<AccessRule, "to" | "in">, by: Actor, isAdmin: boolean): boolean {
  return (
    (to === undefined || toList(to).some((who) => isWho(who, by, isAdmin))) &&
    (place === undefined || toList(place).some((where) => isWhere(where, by.reply)))
  );
}

export function isAbout({ allow, deny }: AccessRule, permission: Permission): boolean {
  return toList(allow ?? deny).some((what) => covers(what, permission));
}

/**
 * True if a selector matches the person. The caller passes `isAdmin`, because other selectors define who is an admin.
 */
export function isWho(who: string, { author, reply }: Actor, isAdmin: boolean): boolean {
  const [word, name] = splitSelector(who);
  const kind = author.kind ?? "member";
  switch (word) {
    case "everybody":
      return true;
    case "members":
      return kind === "member";
    case "guests":
      return kind === "guest";
    case "external":
      return kind === "external";
    case "bots":
      return kind === "bot";
    case "admins":
      return isAdmin;
    case "person":
      return isPerson(author, name);
    case "group":
    case "role":
      return author.groups?.includes(name) === true;
    case "workspace":
      return (author.workspaceId ?? reply.workspaceId) === name;
    default:
      return false;
  }
}

/** Accepts a person's id with or without its workspace. */
function isPerson({ id }: Author, name: string): boolean {
  return id === name || (!name.includes("/") && id.endsWith(`/${name}`));
}

function isWhere(where: string, place: ReplyAddress): boolean {
  const [word, name] = splitSelector(where);
  switch (word) {
    case "everywhere":
      return true;
    case "direct":
      return place.isDirect === true;
    case "channels":
      return place.isDirect !== true;
    case "page":
      return place.platform === PAGE;
    case "channel":
      return place.channelId === name || place.threadId === name;
    case "category":
      return place.categoryId === name;
    case "workspace":
      return place.workspaceId === name;
    case "platform":
      return place.platform === name;
    default:
      return false;
  }
}

function covers(what: string, permission: Permission): boolean {
  const [kind, thing] = splitSelector(permission);
  const [word, name] = splitSelector(what);
  switch (word) {
    case "everything":
      return true;
    case "models":
      return kind === "model";
    case "tools":
      return kind === "tool";
    case "model":
    case "tool":
      return kind === word && isLike(thing, name);
    case "server":
      return kind === "tool" && isLike(thing.split("__", 1)[0] ?? "", name) && thing.includes("__");
    default:
      return word === permission;
  }
}

/** Compares a name with a pattern in which `*` matches any characters. */
export function isLike(name: string, pattern: string): boolean {
  const [first = "", ...rest] = pattern.toLowerCase().split("*");
  const [last, ...between] = rest.toReversed();
  const text = name.toLowerCase();
  if (last === undefined) return text === first;
  if (!text.startsWith(first)) return false;
  let from = first.length;
  for (const part of between.toReversed()) {
    const at = text.indexOf(part, from);
    if (at < 0) return false;
    from = at + part.length;
  }
  return text.length - last.length >= from && text.endsWith(last);
}

function splitSelector(selector: string): [word: string, name: string] {
  const at = selector.indexOf(":");
  return at < 0 ? [selector, ""] : [selector.slice(0, at), selector.slice(at + 1)];
}

export function toList<T>(given: T | readonly T[] | undefined): readonly T[] {
  if (given === undefined) return [];
  return Array.isArray(given) ? given : [given as T];
}

/** Returns a rule without the permissions, people and channels that do not concern the asker and stay hidden. */
export function toMatching(
  { allow, deny, to, in: place }: AccessRule,
  by: Actor,
  permission: Permission,
  isAdmin: boolean,
): AccessRule {
  const what = toList(allow ?? deny).filter((one) => covers(one, permission));
  return {
    ...(allow === undefined ? { deny: what } : { allow: what }),
    ...(to !== undefined && { to: toList(to).filter((who) => isWho(who, by, isAdmin)) }),
    ...(place !== undefined && { in: toList(place).filter((where) => isWhere(where, by.reply)) }),
  };
}

/** Describes a rule as people type it, for example "deny pictures, tools to guests in channel:C1". */
export function describeRule(rule: AccessRule): string {
  const verb = rule.allow === undefined ? "deny" : "allow";
  const to = rule.to === undefined ? "" : ` to ${toList(rule.to).join(", ")}`;
  const place = rule.in === undefined ? "" : ` in ${toList(rule.in).join(", ")}`;
  return `${verb} ${toList(rule.allow ?? rule.deny).join(", ")}${to}${place}`;
}

/** Returns the permission in words that can follow "can" or "can't". */
export function describePermission(permission: Permission): string {
  const [kind, name] = splitSelector(permission);
  switch (kind) {
    case "chat":
      return "ask me here";
    case "pictures":
      return "create images here";
    case "files":
      return "have me read files here";
    case "settings":
      return "change my settings here";
    case "model":
      return `use the model ${name} here`;
    default:
      return `use the tool ${name} here`;
  }
}
