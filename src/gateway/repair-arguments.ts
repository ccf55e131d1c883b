import { isJson } from "./json.ts";

/** Longer arguments are not repaired, because the search takes quadratic time. */
const MAX_SEARCHED_CHARS = 8_000;

/**
 * Repairs a call's arguments if invalid JSON can mean only one object. Some servers put a stray `{}` before the
 * arguments, repeat all earlier text in each fragment, or send everything twice. Returns any other text unchanged.
 * Pure.
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

function consistsOfBeginnings(text: string, whole: string): boolean {
  /** `fits[at]` is true if the text from `at` on is a concatenation of prefixes of `whole`. */
  const fits: boolean[] = [];
  fits[text.length] = true;
  for (let at = text.length - 1; at >= 0; at--) {
    for (let chars = 0; at + chars < text.length && text[at + chars] === whole[chars]; chars++) {
      if (fits[at + chars + 1] === true) fits[at] = true;
    }
  }
  return fits[0] === true;
}
