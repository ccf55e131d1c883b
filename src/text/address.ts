/**
 * Removes mentions at both ends of a text, because they only address someone. A mention in the middle belongs to a
 * sentence and stays. `mention` is the source of a regular expression.
 */
export function withoutAddress(text: string, mention: string): string {
  const atStart = new RegExp(`^(?:\\s*(?:${mention})\\s*[,:、，：]?)+`);
  // Start only at the first of several blanks, because trying each of thousands of blanks would take seconds.
  const atEnd = new RegExp(`(?<!\\s)(?:\\s*(?:${mention}))+\\s*$`);
  return text.replace(atStart, "").replace(atEnd, "");
}
