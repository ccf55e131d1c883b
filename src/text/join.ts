/** Joins the parts that are not empty, each on its own lines. */
export function joinLines(...parts: readonly string[]): string {
  return parts.filter((part) => part.trim() !== "").join("\n");
}

/** Joins the parts that are not empty, with a blank line between them. */
export function joinParagraphs(...parts: readonly string[]): string {
  return parts.filter((part) => part.trim() !== "").join("\n\n");
}
