const MAX_NAME_CHARS = 80;
/** Kept of a long name's end, where its extension stands. */
const TAIL_CHARS = 16;
const READ_CHARS = 1_024;

/**
 * A file's name as it may stand inside a sentence, an attribute or a code span: one line without control, format or
 * bidi characters, quotes, backticks, backslashes or angle brackets, and at most 80 characters. For showing only.
 */
export function toShownFileName(name: string): string {
  // Bounds the work; the end stays, because the extension stands there.
  const bounded = name.length > 2 * READ_CHARS ? name.slice(0, READ_CHARS) + name.slice(-READ_CHARS) : name;
  const clean = bounded
    .replace(/[\p{Z}\s]+/gu, " ")
    .replace(/\p{C}/gu, "")
    .replace(/["“”„«»`]/g, "'")
    .replace(/[<>\\]/g, "_")
    .trim();
  if (clean === "") return "unnamed file";
  const chars = Array.from(clean);
  if (chars.length <= MAX_NAME_CHARS) return clean;
  return [...chars.slice(0, MAX_NAME_CHARS - TAIL_CHARS - 1), "…", ...chars.slice(-TAIL_CHARS)].join("");
}
