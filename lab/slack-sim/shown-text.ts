import type { Content, Json } from "./world.ts";

/**
 * The text that a person reads in a message: the Markdown if it exists, otherwise the text of the blocks, otherwise
 * `text`. Pure.
 */
export function shownText({ markdown, blocks, text }: Content): string {
  if (markdown !== undefined) return markdown;
  const inBlocks = blocks.flatMap(textsOf).join("\n");
  return inBlocks === "" ? text : inBlocks;
}

/** The small print of a message. Pure. */
export function smallPrint({ blocks }: Content): string[] {
  return blocks.filter(({ type }) => type === "context").flatMap(({ elements }) => listOf(elements).map(innerText));
}

/** The texts of a block that people read as the message. Leaves out buttons and small print. Pure. */
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

/** The value if it is a string, otherwise "". */
export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** The objects in a list. Empty if the value is not a list. */
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
