export interface Mention {
  name: string;
  /** UTF-16 offsets of `@name` in the text. */
  start: number;
  end: number;
}

const WORD_END = /[\p{Script=Latin}\p{N}_]$/u;
const WORD_START = /^[\p{Script=Latin}\p{N}_]/u;

/**
 * Finds `@name` for the names given, longest name first, without regard to case. An address like
 * `ada@palaver.example` is no mention, and `@Adam` is none of Ada. A name in Japanese may be followed
 * directly by more text (`@千恵さん`).
 */
export function findMentions(text: string, names: readonly string[]): Mention[] {
  const longestFirst = [...names].sort((a, b) => b.length - a.length);
  const mentions: Mention[] = [];
  for (let at = text.indexOf("@"); at !== -1; at = text.indexOf("@", at + 1)) {
    if (WORD_END.test(text.slice(Math.max(0, at - 2), at))) continue;
    const name = longestFirst.find((candidate) => beginsWith(text, at + 1, candidate));
    if (name === undefined) continue;
    mentions.push({ name, start: at, end: at + 1 + name.length });
    at += name.length;
  }
  return mentions;
}

function beginsWith(text: string, at: number, name: string): boolean {
  const found = text.slice(at, at + name.length);
  if (found.toLowerCase() !== name.toLowerCase()) return false;
  return !(WORD_END.test(name) && WORD_START.test(text.slice(at + name.length, at + name.length + 2)));
}
