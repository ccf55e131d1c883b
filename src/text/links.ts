/** Endings of names that are files or programs far more often than sites. */
const FILE_ENDINGS = new Set(["cc", "cs", "js", "md", "ml", "mm", "pl", "ps", "py", "rs", "sh", "so", "tf", "ts"]);
const SITE_ENDINGS = new Set(
  "app bank biz blog chat club cloud com company dev digital edu email finance fund gov help host info int link live me mil money mov name net network news online org page pay pro shop site social space store support team tech today top vip website wiki work world xyz zip zone".split(
    " ",
  ),
);
const HOST_LIKE = /(?:https?:\/\/|\/\/|www\.)?((?:[\p{L}\p{N}_-]+\.)+\p{L}{2,24})(?![\p{L}\p{N}])/giu;

/** True when a link shows one address and leads to another: its words name a host that is not the one of its target. */
export function isDeceptive(words: string, target: string): boolean {
  if (isSameAddress(words, target)) return false;
  const host = hostOf(target);
  return findHosts(words).some((named) => named !== host);
}

/** True when the words of a link are its target, as people write addresses. */
export function isSameAddress(words: string, target: string): boolean {
  const bare = (address: string) => address.replace(/^https?:\/\/(?:www\.)?|^www\./i, "").replace(/\/$/, "");
  return bare(words.trim()) === bare(target);
}

/** True when a text names a host; a link whose words name none deceives nobody. */
export function namesHost(words: string): boolean {
  return findHosts(words).length > 0;
}

/** "" where it leads to no host. */
function hostOf(target: string): string {
  if (!URL.canParse(target)) return "";
  const { protocol, host, pathname } = new URL(target);
  return toHost(protocol === "mailto:" ? pathname.slice(pathname.lastIndexOf("@") + 1) : host);
}

/** The hosts that a text names, as a reader would take them: compatibility forms of letters count as the letters. */
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

/** Signs that are written by their number are shown as themselves. */
function decode(text: string): string {
  return text
    .replace(/&period;/gi, ".")
    .replace(/&#(?:x([\da-f]{1,6})|(\d{1,7}));/gi, (entity, hex: string | undefined, decimal: string | undefined) => {
      const code = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16);
      return code <= 0x10_ff_ff ? String.fromCodePoint(code) : entity;
    });
}

function toHost(host: string): string {
  // Browsers spell letters beyond ASCII in a way of their own.
  const spelled = URL.canParse(`https://${host}`) ? new URL(`https://${host}`).hostname : host.toLowerCase();
  return spelled.replace(/^www\./, "").replace(/:\d+$/, "");
}
