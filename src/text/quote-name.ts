import { neutralize } from "./neutralize.ts";
import { truncate } from "./truncate.ts";

const MAX_QUOTED_CHARS = 100;

export function toLine(name: string): string {
  return neutralize(name).replace(/\s+/g, " ").trim();
}

/** Quotes a name as code on one line, and truncates a long name. */
export function quoteName(name: string): string {
  return `\`${truncate(toLine(name).replaceAll("`", "'"), MAX_QUOTED_CHARS)}\``;
}

/** Says which permission is missing. `missing` is the platform's name for that permission. */
export function describeLack(missing: string): string {
  return `The bot lacks the permission ${quoteName(missing)}: an administrator has to grant it.`;
}
