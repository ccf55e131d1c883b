/** Endings that belong to files or programs far more often than to websites. */
const FILE_ENDINGS = new Set(["cc", "cs", "js", "md", "ml", "mm", "pl", "ps", "py", "rs", "sh", "so", "tf", "ts"]);
const SITE_ENDINGS = new Set(
  "app bank biz blog chat club cloud com company dev digital edu email finance fund gov help host info int link live me mil money mov name net network news online org page pay pro shop site social space store support team tech today top vip website wiki work world xyz zip zone".split(
    " ",
  ),
);
const HOST_LIKE = /(?:https?:\/\/|\/\/|www\.)?((?:[\p{L}\p{N}_-]+\.)+\p{L}{2,24})(?![\p{L}\p{N}])/giu;

/** True if a link's text names a host to which the link does not lead. */
export function isDeceptive(words: string, target: string): boolean {
  if (isSameAddress(words, target)) return false;
  const host = hostOf(target);
  return findHosts(words).some((named) => named !== host);
}

/** True if a link's text is the link's address, in any form in which people write addresses. */
export function isSameAddress(words: string, target: string): boolean {
  const bare = (address: string) => address.replace(/^https?:\/\/(?:www\.)?|^www\./i, "").replace(/\/$/, "");
  return bare(words.trim()) === bare(target);
}

/** True if a text names a host. A link whose text names no host cannot deceive. */
export function namesHost(words: string): boolean {
  return findHosts(words).length > 0;
}

/** Returns "" if the link leads to no host. */
function hostOf(target: string): string {
  if (!URL.canParse(target)) return "";
  const { protocol, host, pathname } = new URL(target);
  return toHost(protocol === "mailto:" ? pathname.slice(pathname.lastIndexOf("@") + 1) : host);
}

/** Returns the hosts that a text names, as a reader sees them: compatibility forms count as the normal letters. */
function findHosts(text: string): string[] {
  const plain = decode(text)
    .normalize("NFKC")
    .replace(/[\p{Cf}\p{Mn}*_~`\\]/gu, "");
  return [...plain.matchAll(HOST_LIKE)].flatMap(([whole, name = ""]) => {
    const ending = name.slice(name.lastIndexOf(".") + 1).toLowerCase();
    const isClear = /^(?:https?:|\/\/|www\.)/i.test(whole);
    const isSite = SITE_ENDINGS.has(ending) || (ending.length === 2 && !FILE_ENDINGS.has(ending));
    return isClear || isSite ? [toHost(name)] : [];
  });
}

function decode(text: string): string {
  return text
    .replace(/&period;/gi, ".")
    .replace(/&#(?:x([\da-f]{1,6})|(\d{1,7}));/gi, (entity, hex: string | undefined, decimal: string | undefined) => {
      const code = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16);
      return code <= 0x10_ff_ff ? String.fromCodePoint(code) : entity;
    });
}

function toHost(host: string): string {
  // Browsers encode host names with letters outside ASCII as punycode.
  const spelled = URL.canParse(`https://${host}`) ? new URL(`https://${host}`).hostname : host.toLowerCase();
  return spelled.replace(/^www\./, "").replace(/:\d+$/, "");
}
