import { readFile } from "node:fs/promises";
import type { Preview } from "../../src/port/catalogue.ts";
import { splitMarkdown } from "../../src/text/split.ts";
import { lengthOfMarkdown, MAX_LENGTH, toSlackMarkdown } from "./write/markdown.ts";

export async function toPreview(markdown: string): Promise<Preview> {
  const parts = splitMarkdown(markdown, { maxLength: MAX_LENGTH, lengthOf: lengthOfMarkdown });
  const style = await readFile(new URL("preview.css", import.meta.url), "utf8");
  return { platform: "Slack", messages: parts.map(({ text }) => toSlackMarkdown(text)), style };
}
