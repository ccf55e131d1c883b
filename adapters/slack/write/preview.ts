import { splitMarkdown } from "../../../src/text/split.ts";
import { lengthOfMarkdown, MAX_LENGTH, toSlackMarkdown } from "./markdown.ts";

/** The messages that an answer comes to on Slack, in the Markdown that its blocks are given. */
export function toSlackPreview(markdown: string): string[] {
  const parts = splitMarkdown(markdown, { maxLength: MAX_LENGTH, lengthOf: lengthOfMarkdown });
  return parts.map(({ text }) => toSlackMarkdown(text));
}
