/** An option in a text, such as `--size 2K`. */
export interface Flag {
  /** As it was written: telephones make one long dash of two short ones, which also stands in ordinary sentences. */
  dash: string;
  /** In lower case. */
  name: string;
  value: string | undefined;
}

const FLAG = /(?<=^|\s)(--|[—–])([a-z]+)(?:(?:\s*=\s*|\s+)(?!--|[—–])(\S+))?/gi;

/** Takes the options out of a text; `take` returns what stays in the place of one, undefined for all of it. */
export function takeFlags(text: string, take: (flag: Flag) => string | undefined): string {
  const rest = text.replace(FLAG, (all, dash: string, name: string, value: string | undefined) => {
    return take({ dash, name: name.toLowerCase(), value }) ?? all;
  });
  return rest.replace(/[ \t]{2,}/g, " ").trim();
}
