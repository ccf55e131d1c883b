import { withoutAddress } from "../../../src/text/address.ts";
import type { Workspace } from "../api/workspaces.ts";
import type { People } from "./people.ts";

/** Names looked up for one message; those after them are shown as they are. */
const MAX_NAMES = 20;
/** `<@U…>`, `<#C…|name>`, `<!here>`, `<https://…|label>`: the only places where Slack leaves angle brackets. */
const MARKUP = /<([^<>]+)>/g;
const CODE = /```[^]*?```|`[^`\n]+`/g;
const USER = /^@([A-Z0-9]+)(?:\|(.*))?$/s;
const CHANNEL = /^#([A-Z0-9]+)(?:\|(.*))?$/s;

type Names = Pick<People, "person" | "channelName">;

/** The words of a message as a person reads them: names for ids, and without the mention that only addresses the bot. */
export async function readWords(text: string, workspace: Workspace, names: Names): Promise<string> {
  // Nothing but a mention still says who is asked for.
  const words = withoutAddress(text, `<@${workspace.botUserId}(?:\\|[^>]*)?>`).trim() || text.trim();
  const found = await findNames(words, workspace, names);
  // Slack escapes what people write, so plain text and markup are told apart before either is read.
  const parts = words
    .split(MARKUP)
    .map((part, index) => (index % 2 === 1 ? toShown(part, found) : unescapeMarkup(part)));
  return parts.join("").trim();
}

/** True for a text that mentions the person outside of code. A mention in code is only quoted. */
export function mentions(text: string, userId: string): boolean {
  const said = text.replaceAll(CODE, " ");
  return said.includes(`<@${userId}>`) || said.includes(`<@${userId}|`);
}

/** The person a text begins by addressing. */
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
  // A name must not begin a line of its own.
  return new Map(found.flatMap(([id, name]) => (name === undefined ? [] : [[id, name.replace(/[\p{Cc}\s]+/gu, " ")]])));
}

/** One piece of markup, without its brackets, as Slack shows it. */
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

/** What people wrote: Slack escapes three letters in messages and in the words behind a command. */
export function unescapeMarkup(text: string): string {
  return text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
}
