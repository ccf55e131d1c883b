/**
 * Leaves out the mentions that only address somebody, which stand at either end of a text; in the middle of a sentence
 * one is a word of it. `mention` is the source of a regular expression.
 */
export function withoutAddress(text: string, mention: string): string {
  return text
    .replace(new RegExp(`^(?:\\s*(?:${mention})\\s*[,:、，：]?)+`), "")
    .replace(new RegExp(`(?:\\s*(?:${mention}))+\\s*$`), "");
}
