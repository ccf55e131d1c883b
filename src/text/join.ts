/** Joins texts, each on its own lines. Leaves out empty texts. */
export function joinLines(...parts: readonly string[]): string {
  return parts.filter((part) => part.trim() !== "").join("\n");
}

/** Joins texts with a blank line between them. Leaves out empty texts. */
export function joinParagraphs(...parts: readonly string[]): string {
  return parts.filter((part) => part.trim() !== "").join("\n\n");
}
