/** Characters that are invisible or that change the direction of text. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\u{E0100}-\u{E01EF}\uFE00-\uFE0F\u115F\u1160\u3164\uFFA0]/gu;

/** Formats arguments as indented JSON with escaped invisible characters. */
export function showArguments(args: unknown): string {
  return JSON.stringify(args, undefined, 2).replace(UNSEEN, (char) => (char === "\n" ? char : toEscapes(char)));
}

function toEscapes(char: string): string {
  return Array.from({ length: char.length }, (_, index) => {
    return `\\u${char.charCodeAt(index).toString(16).padStart(4, "0")}`;
  }).join("");
}
