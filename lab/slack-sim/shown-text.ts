import type { Content, Json } from "./world.ts";

/**
 * Returns the text that people read in a message: the Markdown, or else the text of the blocks, or else `text`. Pure.
 */
export function shownText({ markdown, blocks, text }: Content): string {
  if (markdown !== undefined) return markdown;
  const inBlocks = blocks.flatMap(textsOf).join("\n");
  return inBlocks === "" ? text : inBlocks;
}

/** Returns a message's small print. Pure. */
export function smallPrint({ blocks }: Content): string[] {
  return blocks.filter(({ type }) => type === "context").flatMap(({ elements }) => listOf(elements).map(innerText));
}

/** Returns the texts of a block that people read as the message, without buttons and small print. Pure. */
function textsOf(block: Json): string[] {
  switch (block["type"]) {
    case "markdown":
      return [textOf(block["text"])];
    case "section":
      return [innerText(block["text"]), ...listOf(block["fields"]).map(innerText)].filter((text) => text !== "");
    case "header":
      return [innerText(block["text"])];
    case "rich_text":
      return [richText(block)];
    default:
      return [];
  }
}

export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** Returns the objects in a list; [] for other values. */
export function listOf(value: unknown): Json[] {
  return Array.isArray(value) ? value.filter((item): item is Json => typeof item === "object" && item !== null) : [];
}

function innerText(value: unknown): string {
  if (typeof value !== "object" || value === null || !("text" in value)) return "";
  return textOf(value.text);
}

function richText(element: Json): string {
  return textOf(element["text"]) + listOf(element["elements"]).map(richText).join("");
}
