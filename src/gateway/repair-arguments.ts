import { isJson } from "./json.ts";

/** Longer texts are not searched: the search takes the square of their length. */
const MAX_SEARCHED_CHARS = 8_000;

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

/** True if the text is one beginning of `whole` after the other. */
function consistsOfBeginnings(text: string, whole: string): boolean {
  /** At each place: the text from there on consists of beginnings. */
  const fits: boolean[] = [];
  fits[text.length] = true;
  for (let at = text.length - 1; at >= 0; at--) {
    for (let chars = 0; at + chars < text.length && text[at + chars] === whole[chars]; chars++) {
      if (fits[at + chars + 1] === true) fits[at] = true;
    }
  }
  return fits[0] === true;
}
