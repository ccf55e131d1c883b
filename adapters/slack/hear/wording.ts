import { withoutAddress } from "../../../src/text/address.ts";
import type { Workspace } from "../api/workspaces.ts";
import type { People } from "./people.ts";

/** Most names to look up for one message. Further ids stay in the text. */
const MAX_NAMES = 20;
/** `<@U…>`, `<#C…|name>`, `<!here>`, `<https://…|label>`. Slack uses unescaped angle brackets only in these. */
const MARKUP = /<([^<>]+)>/g;
const CODE = /```[^]*?```|`[^`\n]+`/g;
const USER = /^@([A-Z0-9]+)(?:\|(.*))?$/s;
const CHANNEL = /^#([A-Z0-9]+)(?:\|(.*))?$/s;

type Names = Pick<People, "person" | "channelName">;

/** The words of a message as people read them: names instead of ids, without a mention that only addresses the bot. */
export async function readWords(text: string, workspace: Workspace, names: Names): Promise<string> {
  // Keeps a mention that is the whole message, because it addresses the bot.
  const words = withoutAddress(text, `<@${workspace.botUserId}(?:\\|[^>]*)?>`).trim() || text.trim();
  const found = await findNames(words, workspace, names);
  // Splits off markup before decoding escapes, because people's decoded text could look like markup.
  const parts = words
    .split(MARKUP)
    .map((part, index) => (index % 2 === 1 ? toShown(part, found) : unescapeMarkup(part)));
  return parts.join("").trim();
}

/** True if a text mentions the person outside of code. A mention inside code is only a quote. */
export function mentions(text: string, userId: string): boolean {
  const outsideCode = text.replaceAll(CODE, " ");
  return outsideCode.includes(`<@${userId}>`) || outsideCode.includes(`<@${userId}|`);
}

/** Returns the id of the person whom the text mentions at its start. */
export function firstMention(text: string): string | undefined {
  return /^\s*<@([A-Z0-9]+)(?:\|[^>]*)?>/.exec(text)?.[1];
}

async function findNames(text: string, workspace: Workspace, names: Names): Promise<ReadonlyMap<string, string>> {
  const ids = new Set<string>();
  for (const [, inside = ""] of text.matchAll(MARKUP)) {
    const [, channelId, label = ""] = CHANNEL.exec(inside) ?? [];
    const id = USER.exec(inside)?.[1] ?? (label === "" ? channelId : undefined);
    if (id !== undefined && ids.size < MAX_NAMES) ids.add(id);
  }
  const found = await Promise.all(
    [...ids].map(async (id): Promise<[string, string | undefined]> => {
      if (/^[UW]/.test(id)) return [id, (await names.person(workspace, id))?.name];
      return [id, await names.channelName(workspace, id)];
    }),
  );
  // A line break in a name must not start a new line.
  return new Map(found.flatMap(([id, name]) => (name === undefined ? [] : [[id, name.replace(/[\p{Cc}\s]+/gu, " ")]])));
}

/** Converts one piece of markup, without its brackets, to what Slack shows. */
function toShown(inside: string, names: ReadonlyMap<string, string>): string {
  const [, userId, userLabel] = USER.exec(inside) ?? [];
  if (userId !== undefined) return `@${names.get(userId) ?? unescapeMarkup(userLabel || userId)}`;
  const [, channelId, channelLabel] = CHANNEL.exec(inside) ?? [];
  if (channelId !== undefined) return `#${unescapeMarkup(channelLabel || (names.get(channelId) ?? channelId))}`;
  const [target = "", label = ""] = inside.split(/\|(.*)/s);
  if (target.startsWith("!")) return toSpecial(target, unescapeMarkup(label));
  return toLink(unescapeMarkup(target), unescapeMarkup(label));
}

/** `<!here>`, `<!subteam^S…|@group>`, `<!date^…^…|words>` */
function toSpecial(target: string, label: string): string {
  if (label !== "") return label;
  const [name = ""] = target.slice(1).split("^");
  return name === "subteam" ? "@group" : `@${name}`;
}

function toLink(url: string, label: string): string {
  const bare = url.replace(/^(https?:\/\/|mailto:|tel:)/, "");
  const isPlain = label === "" || label === url || label.replace(/\/$/, "") === bare.replace(/\/$/, "");
  if (!isPlain) return `[${label}](${url})`;
  return /^https?:/.test(url) ? url : bare;
}

/** Slack escapes three characters in messages and in the arguments of commands. */
export function unescapeMarkup(text: string): string {
  return text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
}
