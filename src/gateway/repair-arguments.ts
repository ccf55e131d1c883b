/** Longer texts are not searched: a whole call has a few thousand characters. */
const MAX_SEARCHED_CHARS = 20_000;

/**
 * The arguments of a call as one JSON object, if text that is no JSON can only mean one. Some servers put a stray `{}`
 * before the arguments, repeat in each fragment all that came before, or send the whole twice. Anything else is
 * returned as it is. Pure.
 */
export function repairArguments(text: string): string {
  const trimmed = text.trim();
  if (trimmed === "" || isJson(trimmed) || trimmed.length > MAX_SEARCHED_CHARS) return text;
  for (let at = trimmed.indexOf("{", 1); at !== -1; at = trimmed.indexOf("{", at + 1)) {
    const whole = trimmed.slice(at);
    const before = trimmed.slice(0, at).replaceAll(/\{\s*\}/g, "");
    if (consistsOfBeginnings(before, whole) && isJson(whole)) return whole;
  }
  return text;
}

/** True if the text is one beginning of `whole` after the other, each at least as long as the one before. */
function consistsOfBeginnings(text: string, whole: string): boolean {
  let left = text;
  let leastChars = 1;
  while (left !== "") {
    const end = left.indexOf(whole.slice(0, leastChars), leastChars);
    const piece = end === -1 ? left : left.slice(0, end);
    if (!whole.startsWith(piece)) return false;
    leastChars = piece.length;
    left = left.slice(piece.length);
  }
  return true;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
