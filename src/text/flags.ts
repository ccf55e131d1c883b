/** An option in a text, such as `--size 2K`. */
export interface Flag {
  /** The dash as written. Phones turn two dashes into one long dash, which also occurs in ordinary sentences. */
  dash: string;
  /** The name in lower case. */
  name: string;
  value: string | undefined;
}

const FLAG = /(?<=^|\s)(--|[—–])([a-z]+)(?:(?:\s*=\s*|\s+)(?!--|[—–])(\S+))?/gi;

/** Removes options from a text. `take` returns the text that replaces an option, or undefined to keep the option. */
export function takeFlags(text: string, take: (flag: Flag) => string | undefined): string {
  const rest = text.replace(FLAG, (all, dash: string, name: string, value: string | undefined) => {
    return take({ dash, name: name.toLowerCase(), value }) ?? all;
  });
  return rest.replace(/[ \t]{2,}/g, " ").trim();
}
