import { isDeceptive } from "./links.ts";
import { toLine } from "./quote-name.ts";
import { truncate } from "./truncate.ts";

/** A page that a tool read, or that the gateway's model cites. */
export interface Source {
  /** Starts with `http://` or `https://`, and has no brackets or white space. */
  url: string;
  /** Untrusted text; "" if unknown. */
  title: string;
  /** The numbers that the gateway's model uses for it in the text; absent if only a tool read it. */
  marks?: number[];
}

/** Most sources of one answer. */
const MAX_SOURCES = 30;
/** Most sources under an answer. */
const MAX_SHOWN = 8;
const MAX_URL_CHARS = 500;
const MAX_TITLE_CHARS = 80;
/** The first line of the small print. A platform without the mark `-# ` reads it with `readSmallPrint`. */
const HEADING = "-# Sources:";
const SMALL_PRINT = new RegExp(`(?:^|\\n\\n)${HEADING}((?:\\n-# \\d+\\. [^\\n]+)+)$`);
const SMALL_LINE = /^-# (\d+)\. \[(.*)\]\((\S+)\)$/;

/** Undefined if the address is not one that people can open. */
export function toSource(address: unknown, title: unknown = ""): Source | undefined {
  const url = typeof address === "string" ? URL.parse(address.trim()) : null;
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== "" || url.password !== "") return undefined;
  const href = url.href.replace(/[()<>|[\]\\]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
  if (href.length > MAX_URL_CHARS) return undefined;
  return { url: href, title: typeof title === "string" ? truncate(toLine(title), MAX_TITLE_CHARS) : "" };
}

/** Lists each address once, with the first title and all marks. Cited sources come first. Pure. */
export function joinSources(...lists: ReadonlyArray<readonly Source[]>): Source[] {
  const joined = new Map<string, Source>();
  for (const source of lists.flat()) {
    const before = joined.get(source.url);
    const marks = [...new Set([...(before?.marks ?? []), ...(source.marks ?? [])])];
    const isCited = (before?.marks ?? source.marks) !== undefined;
    const title = before?.title || source.title;
    joined.set(source.url, { url: source.url, title, ...(isCited && { marks }) });
  }
  const all = [...joined.values()];
  const isCited = ({ marks }: Source) => marks !== undefined;
  return [...all.filter(isCited), ...all.filter((source) => !isCited(source))].slice(0, MAX_SOURCES);
}

/** Code and links stay as they are, except a link in parentheses, which is how OpenAI's models cite. */
const PIECE = new RegExp(
  [
    /(?<fence>^[ \t>]*(?<marker>`{3,}|~{3,})[^]*?(?:^[ \t>]*\k<marker>[`~]*[ \t]*$|(?![^])))/,
    /(?<code>(?<!`)(?<run>`+)(?!`)[^\n]*?(?<!`)\k<run>(?!`))/,
    /\(\[[^[\]\n]{1,200}\]\((?<cited>https?:[^\s()]+(?:\([^\s()]*\)[^\s()]*)*)\)\)/,
    /(?<link>!?\[(?:\[[^[\]\n]{0,200}\]|[^[\]\n]){0,200}\]\()/,
    /(?<definition>^[ \t]*\[[^[\]\n]{1,200}\]:)/,
    /(?<escaped>\\.)/,
    /(?<!\[)\[(?<number>\d{1,3})\]/,
    /【(?<mark>\d{1,3})(?:[:†][^【】\n]{0,80})?】/,
  ]
    .map(({ source }) => source)
    .join("|"),
  "gm",
);
/** The end of a text that can become a mark, or a link. */
const UNDECIDED = /(?:\[\d{0,3}\]?|【[^【】\n]{0,80})$/;

/**
 * Turns the model's citation marks into numbered links: `[2]`, `【2†source】` and `([words](address))`. Leaves a mark
 * alone if no source or several sources have its number. If the text is still growing, leaves out a possible mark at
 * its end. Pure.
 */
export function linkMarks(text: string, sources: readonly Source[], isGrowing = false): string {
  const cited = sources.filter(({ marks }) => marks !== undefined);
  if (cited.length === 0) return text;
  const find = (number: string): Source | undefined => {
    const [found, another] = cited.filter(({ marks }) => marks?.includes(Number(number)) === true);
    return another === undefined ? found : undefined;
  };
  const whole = isGrowing ? text.replace(UNDECIDED, "") : text;
  return whole.replace(PIECE, (piece, ...rest: unknown[]) => {
    const { cited: address, number, mark = number } = rest.at(-1) as Record<string, string | undefined>;
    const url = toSource(address)?.url;
    const source = mark === undefined ? cited.find((one) => one.url === url) : find(mark);
    return source === undefined ? piece : `[[${sources.indexOf(source) + 1}]](${source.url})`;
  });
}

/** The sources as lines of small print, to put under an answer; [] for none. */
export function toSmallPrint(sources: readonly Source[]): string[] {
  const lines = sources.slice(0, MAX_SHOWN).map((source, index) => {
    return `-# ${index + 1}. [${escapeLabel(toLabel(source))}](${source.url})`;
  });
  return lines.length === 0 ? [] : [HEADING, ...lines];
}

/** The label of a link: the title, unless it is empty or names another site. */
export function toLabel({ url, title }: Source): string {
  return title === "" || isDeceptive(title, url) || /https?:\/\//i.test(title) ? new URL(url).host : title;
}

/** A label as the words of a Markdown link. Markdown readers disagree on brackets there. */
export function escapeLabel(label: string): string {
  return label
    .replaceAll("[", "(")
    .replaceAll("]", ")")
    .replace(/[\\`*_~|<>]/g, "\\$&");
}

/** A line of small print. */
export interface SmallLine {
  number: string;
  label: string;
  url: string;
}

/** Separates the small print from the text above. */
export function readSmallPrint(markdown: string): { text: string; lines: SmallLine[] } {
  const found = SMALL_PRINT.exec(markdown);
  if (found === null) return { text: markdown, lines: [] };
  const lines = (found[1] ?? "").split("\n").flatMap((line): SmallLine[] => {
    const [, number = "", label = "", url = ""] = SMALL_LINE.exec(line) ?? [];
    return url === "" ? [] : [{ number, label: label.replace(/\\(.)/g, "$1"), url }];
  });
  return { text: markdown.slice(0, found.index), lines };
}

/** Keeps the model's own words from looking like the small print. */
export function withoutSmallPrint(text: string): string {
  return text.replaceAll(HEADING, HEADING.slice(3));
}
