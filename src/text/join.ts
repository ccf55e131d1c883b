/** Joins the parts that have any words, each on lines of its own. */
export function joinLines(...parts: readonly string[]): string {
  return parts.filter((part) => part.trim() !== "").join("\n");
}

/** The same with an empty line between them. */
export function joinParagraphs(...parts: readonly string[]): string {
  return parts.filter((part) => part.trim() !== "").join("\n\n");
}
