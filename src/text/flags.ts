/** An option in a text, such as `--size 2K`. */
export interface Flag {
  /** As written. Phones turn two dashes into one long dash, but that also occurs in ordinary sentences. */
  dash: string;
  /** In lower case. */
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
