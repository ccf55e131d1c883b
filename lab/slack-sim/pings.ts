import { listOf } from "./shown-text.ts";
import type { Content, Json } from "./world.ts";

/** Markup that notifies people. With `&lt;` instead of `<` it is plain text. */
const CONTROL = /<(?:!(?:channel|here|everyone)|!subteam\^[A-Z0-9]+|@[UW][A-Z0-9]+)(?:\|[^>]*)?>/g;
/** Plain words that also notify people with `parse=full` or `link_names`. */
const PLAIN = /(?<![\w@])@(?:channel|here|everyone)\b/g;

/** Returns the mentions in a message that notify people. Pure. */
export function pingsOf({ text, markdown, blocks }: Content, { linksNames = false } = {}): string[] {
  const written = [markdown ?? "", text, ...blocks.flatMap(writtenIn)];
  const control = written.flatMap((part) => part.match(CONTROL) ?? []);
  const plain = linksNames ? (text.match(PLAIN) ?? []) : [];
  return [...new Set([...control, ...plain])];
}

/** Returns the texts of a block in which Slack reads mentions. It reads none in `plain_text`. */
function writtenIn(block: Json): string[] {
  if (block["type"] === "markdown" && typeof block["text"] === "string") return [block["text"]];
  if (block["type"] === "mrkdwn" && typeof block["text"] === "string") return [block["text"]];
  if (block["type"] === "user") return [`<@${String(block["user_id"])}>`];
  if (block["type"] === "broadcast") return [`<!${String(block["range"])}>`];
  if (block["type"] === "usergroup") return [`<!subteam^${String(block["usergroup_id"])}>`];
  const inner = typeof block["text"] === "object" ? [block["text"] as Json] : [];
  return [...inner, ...listOf(block["fields"]), ...listOf(block["elements"])].flatMap(writtenIn);
}
