import { listOf } from "./shown-text.ts";
import type { Content, Json } from "./world.ts";

/** Sequences in text that notify people. Written with `&lt;` they are only letters. */
const CONTROL = /<(?:!(?:channel|here|everyone)|!subteam\^[A-Z0-9]+|@[UW][A-Z0-9]+)(?:\|[^>]*)?>/g;
/** With `parse=full` or `link_names` also plain words notify. */
const PLAIN = /(?<![\w@])@(?:channel|here|everyone)\b/g;

/** What in a message notifies people, as it is written there; empty for a message that disturbs nobody. Pure. */
export function pingsOf({ text, markdown, blocks }: Content, { linksNames = false } = {}): string[] {
  const written = [markdown ?? "", text, ...blocks.flatMap(writtenIn)];
  const control = written.flatMap((part) => part.match(CONTROL) ?? []);
  const plain = linksNames ? (text.match(PLAIN) ?? []) : [];
  return [...new Set([...control, ...plain])];
}

/** Texts of a block that Slack reads for mentions. `plain_text` is never read. */
function writtenIn(block: Json): string[] {
  if (block["type"] === "markdown" && typeof block["text"] === "string") return [block["text"]];
  if (block["type"] === "mrkdwn" && typeof block["text"] === "string") return [block["text"]];
  if (block["type"] === "user") return [`<@${String(block["user_id"])}>`];
  if (block["type"] === "broadcast") return [`<!${String(block["range"])}>`];
  if (block["type"] === "usergroup") return [`<!subteam^${String(block["usergroup_id"])}>`];
  const inner = typeof block["text"] === "object" ? [block["text"] as Json] : [];
  return [...inner, ...listOf(block["fields"]), ...listOf(block["elements"])].flatMap(writtenIn);
}
