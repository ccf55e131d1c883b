import type { Content, Json } from "./world.ts";

/** What a person reads of a message: the Markdown, else the text inside the blocks, else the text. Pure. */
export function shownText({ markdown, blocks, text }: Content): string {
  if (markdown !== undefined) return markdown;
  const inBlocks = blocks.flatMap(textsOf).join("\n");
  return inBlocks === "" ? text : inBlocks;
}

/** What stands in small print beside the text. Pure. */
export function smallPrint({ blocks }: Content): string[] {
  return blocks.filter(({ type }) => type === "context").flatMap(({ elements }) => listOf(elements).map(innerText));
}

/** Texts inside a block that people read as the message; buttons and their kind, and small print, are left out. Pure. */
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

/** The text a value is; empty when it is none. */
export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** The list of objects a value is; empty when it is none. */
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
