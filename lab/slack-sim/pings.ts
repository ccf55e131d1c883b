import { listOf } from "./shown-text.ts";
import type { Content, Json } from "./world.ts";

/** Sequences in a text that notify people. With `&lt;` instead of `<` they are plain text. */
const CONTROL = /<(?:!(?:channel|here|everyone)|!subteam\^[A-Z0-9]+|@[UW][A-Z0-9]+)(?:\|[^>]*)?>/g;
/** With `parse=full` or `link_names`, plain words also notify people. */
const PLAIN = /(?<![\w@])@(?:channel|here|everyone)\b/g;

/** The parts of a message that notify people. Pure. */
export function pingsOf({ text, markdown, blocks }: Content, { linksNames = false } = {}): string[] {
  const written = [markdown ?? "", text, ...blocks.flatMap(writtenIn)];
  const control = written.flatMap((part) => part.match(CONTROL) ?? []);
  const plain = linksNames ? (text.match(PLAIN) ?? []) : [];
  return [...new Set([...control, ...plain])];
}

/** The texts of a block in which Slack reads mentions. Slack never reads mentions in `plain_text`. */
function writtenIn(block: Json): string[] {
  if (block["type"] === "markdown" && typeof block["text"] === "string") return [block["text"]];
  if (block["type"] === "mrkdwn" && typeof block["text"] === "string") return [block["text"]];
  if (block["type"] === "user") return [`<@${String(block["user_id"])}>`];
  if (block["type"] === "broadcast") return [`<!${String(block["range"])}>`];
  if (block["type"] === "usergroup") return [`<!subteam^${String(block["usergroup_id"])}>`];
  const inner = typeof block["text"] === "object" ? [block["text"] as Json] : [];
  return [...inner, ...listOf(block["fields"]), ...listOf(block["elements"])].flatMap(writtenIn);
}
