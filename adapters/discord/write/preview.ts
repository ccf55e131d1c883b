import { splitMarkdown } from "../../../src/text/split.ts";
import { lengthOfMarkdown, toDiscordMarkdown } from "./markdown.ts";
import { MAX_LENGTH } from "./message-body.ts";

/** The messages that an answer comes to on Discord, in the Markdown that they are given. */
export function toDiscordPreview(markdown: string): string[] {
  const parts = splitMarkdown(markdown, { maxLength: MAX_LENGTH, lengthOf: lengthOfMarkdown });
  return parts.map(({ text }) => toDiscordMarkdown(text));
}
