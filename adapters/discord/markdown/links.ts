/** Endings of names that are files or programs far more often than sites. */
const FILE_ENDINGS = new Set(["cc", "cs", "js", "md", "ml", "mm", "pl", "ps", "py", "rs", "sh", "so", "tf", "ts"]);
const SITE_ENDINGS = new Set(
  "app bank biz blog chat club cloud com company dev digital edu email finance fund gov help host info int link live me mil money mov name net network news online org page pay pro shop site social space store support team tech today top vip website wiki work world xyz zip zone".split(
    " ",
  ),
);
const HOST_LIKE = /(?:https?:\/\/|\/\/|www\.)?((?:[\p{L}\p{N}_-]+\.)+\p{L}{2,24})(?![\p{L}\p{N}])/giu;

/**
 * A link as it may be shown. Words that name one address over a link to another would deceive: then both are shown.
 * Pictures become links, since Discord draws none from text.
 */
export function toHonestLink(link: string, words: string, target: string): string {
  if (!isFollowed(target)) return link;
  const text = words.replace(/\s+/g, " ").trim();
  if (text === "" || isSameAddress(text, target)) return target;
  const host = toHost(new URL(target).host);
  const isDeceiving = findHosts(text).some((named) => named !== host);
  if (isDeceiving) return `\`${text.replaceAll("`", "'")}\` (<${target}>)`;
  // Discord takes no address for the words of a link.
  if (/https?:\/\//i.test(text)) return target;
  return link.startsWith("!") ? link.slice(1) : link;
}

/** Whether Discord makes a link of it, or may: to the web in any spelling that a browser understands, or into itself. */
function isFollowed(target: string): boolean {
  return URL.canParse(target) && /^(?:https?|discord):$/.test(new URL(target).protocol);
}

function isSameAddress(text: string, target: string): boolean {
  const bare = (address: string) => address.replace(/^https?:\/\/(?:www\.)?|^www\./i, "").replace(/\/$/, "");
  return bare(text) === bare(target);
}

/** The hosts that a text names, as a reader would take them: compatibility forms of letters count as the letters. */
function findHosts(text: string): string[] {
  const plain = text.normalize("NFKC").replace(/[\p{Cf}\p{Mn}*_~`]/gu, "");
  return [...plain.matchAll(HOST_LIKE)].flatMap(([whole, name = ""]) => {
    const ending = name.slice(name.lastIndexOf(".") + 1).toLowerCase();
    const isClear = /^(?:https?:|\/\/|www\.)/i.test(whole);
    const isSite = SITE_ENDINGS.has(ending) || (ending.length === 2 && !FILE_ENDINGS.has(ending));
    return isClear || isSite ? [toHost(name)] : [];
  });
}

function toHost(host: string): string {
  return host
    .toLowerCase()
    .replace(/^www\./, "")
    .replace(/:\d+$/, "");
}
