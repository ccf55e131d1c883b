import { neutralize } from "./neutralize.ts";
import { truncate } from "./truncate.ts";

const MAX_QUOTED_CHARS = 100;

/** Puts a name on one line. */
export function toLine(name: string): string {
  return neutralize(name).replace(/\s+/g, " ").trim();
}

/** Quotes a name as code on one line. Truncates it if it is too long. */
export function quoteName(name: string): string {
  return `\`${truncate(toLine(name).replaceAll("`", "'"), MAX_QUOTED_CHARS)}\``;
}

/** `missing` is the platform's name for a permission. */
export function describeLack(missing: string): string {
  return `The bot lacks the permission ${quoteName(missing)}: an administrator has to grant it.`;
}
