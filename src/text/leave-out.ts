/**
 * Keeps the beginning and the end of a text, with a mark between them that says how much is left out: what is asked
 * stands before or after what was pasted. The mark comes on top of `keptChars`. No pair of surrogates is parted.
 */
export function leaveOut(text: string, keptChars: number): string {
  if (keptChars >= text.length) return text;
  let from = Math.ceil(keptChars / 2);
  let to = text.length - Math.floor(keptChars / 2);
  // Never half of a character that takes two units.
  if (isLowSurrogate(text, from)) from--;
  if (isLowSurrogate(text, to)) to++;
  return `${text.slice(0, Math.max(from, 0))}\n[… ${to - from} characters left out …]\n${text.slice(to)}`;
}

/** True when the unit at `index` is the second half of a pair. */
function isLowSurrogate(text: string, index: number): boolean {
  return /[\uDC00-\uDFFF]/.test(text.charAt(index)) && /[\uD800-\uDBFF]/.test(text.charAt(index - 1));
}
