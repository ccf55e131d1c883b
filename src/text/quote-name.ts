import { neutralize } from "./neutralize.ts";
import { truncate } from "./truncate.ts";

const MAX_QUOTED_CHARS = 100;

/** A name of somebody or something as one line, which begins no other. */
export function toLine(name: string): string {
  return neutralize(name).replace(/\s+/g, " ").trim();
}

/** Quotes a name as code, on one line and cut where it is too long. */
export function quoteName(name: string): string {
  return `\`${truncate(toLine(name).replaceAll("`", "'"), MAX_QUOTED_CHARS)}\``;
}

/** `missing` is a permission by the platform's name for it. */
export function describeLack(missing: string): string {
  return `The bot lacks the permission ${quoteName(missing)}: an administrator has to grant it.`;
}
