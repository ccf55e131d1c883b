import { isDeceptive, isSameAddress } from "../../../src/text/links.ts";

/**
 * A link as it may be shown. Words that name one address over a link to another would deceive: then both are shown.
 * Pictures become links, since Discord draws none from text.
 */
export function toHonestLink(link: string, words: string, target: string): string {
  if (!isFollowed(target)) return link;
  const text = words.replace(/\s+/g, " ").trim();
  if (text === "" || isSameAddress(text, target)) return target;
  if (isDeceptive(text, target)) return `\`${text.replaceAll("`", "'")}\` (<${target}>)`;
  // Discord takes no address for the words of a link.
  if (/https?:\/\//i.test(text)) return target;
  return link.startsWith("!") ? link.slice(1) : link;
}

/** Whether Discord makes a link of it, or may: to the web in any spelling that a browser understands, or into itself. */
function isFollowed(target: string): boolean {
  return URL.canParse(target) && /^(?:https?|discord):$/.test(new URL(target).protocol);
}
