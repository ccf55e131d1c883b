/**
 * Leaves out the mentions that only address somebody, which stand at either end of a text; in the middle of a sentence
 * one is a word of it. `mention` is the source of a regular expression.
 */
export function withoutAddress(text: string, mention: string): string {
  const atStart = new RegExp(`^(?:\\s*(?:${mention})\\s*[,:、，：]?)+`);
  // It begins where blanks begin: a search from each of thousands of blanks would take seconds.
  const atEnd = new RegExp(`(?<!\\s)(?:\\s*(?:${mention}))+\\s*$`);
  return text.replace(atStart, "").replace(atEnd, "");
}
