/** Keeps beginning and end, where questions stand, with a mark between them that comes on top of `keptChars`. */
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
