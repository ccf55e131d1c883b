import { isDeceptive } from "./links.ts";
import { toLine } from "./quote-name.ts";
import { truncate } from "./truncate.ts";

/** A page that a tool read, or that the gateway's model cites. */
export interface Source {
  /** Starts with `http://` or `https://`, and has no brackets or white space. */
  url: string;
  /** Untrusted text; "" if unknown. */
  title: string;
  /** The numbers with which the model's text cites the page. Absent if only a tool read the page. */
  marks?: number[];
}

/** An answer keeps at most this many sources. */
const MAX_SOURCES = 30;
/** At most this many sources are shown under an answer. */
const MAX_SHOWN = 8;
const MAX_URL_CHARS = 500;
const MAX_TITLE_CHARS = 80;
/** The first line of the small print. Platforms that do not know the mark `-# ` use `readSmallPrint`. */
const HEADING = "-# Sources:";
const SMALL_PRINT = new RegExp(`(?:^|\\n\\n)${HEADING}((?:\\n-# \\d+\\. [^\\n]+)+)$`);
const SMALL_LINE = /^-# (\d+)\. \[(.*)\]\((\S+)\)$/;

/** Returns undefined if people cannot open the address. */
export function toSource(address: unknown, title: unknown = ""): Source | undefined {
  const url = typeof address === "string" ? URL.parse(address.trim()) : null;
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== "" || url.password !== "") return undefined;
  const href = url.href.replace(/[()<>|[\]\\]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
  if (href.length > MAX_URL_CHARS) return undefined;
  return { url: href, title: typeof title === "string" ? truncate(toLine(title), MAX_TITLE_CHARS) : "" };
}

/** Lists each address once, with its first title and all its citation marks. Cited sources come first. Pure. */
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

/** Matches code and links, which stay unchanged, and links in parentheses, the form in which OpenAI's models cite. */
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
/** Matches if a text ends with something that can become a mark or a link. */
const UNDECIDED = /(?:\[\d{0,3}\]?|【[^【】\n]{0,80})$/;

/**
 * Turns the model's citation marks into numbered links: `[2]`, `【2†source】` and `([words](address))`. Leaves a mark
 * alone unless exactly one source has its number. Leaves out a possible mark at the end of growing text. Pure.
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

export function toSmallPrint(sources: readonly Source[]): string[] {
  const lines = sources.slice(0, MAX_SHOWN).map((source, index) => {
    return `-# ${index + 1}. [${escapeLabel(toLabel(source))}](${source.url})`;
  });
  return lines.length === 0 ? [] : [HEADING, ...lines];
}

/** Returns the label of a link: the title, unless it is empty or names another site. */
export function toLabel({ url, title }: Source): string {
  return title === "" || isDeceptive(title, url) || /https?:\/\//i.test(title) ? new URL(url).host : title;
}

/** Escapes a label for the text of a Markdown link. Replaces brackets, because Markdown readers disagree on them. */
export function escapeLabel(label: string): string {
  return label
    .replaceAll("[", "(")
    .replaceAll("]", ")")
    .replace(/[\\`*_~|<>]/g, "\\$&");
}

export interface SmallLine {
  number: string;
  label: string;
  url: string;
}

export function readSmallPrint(markdown: string): { text: string; lines: SmallLine[] } {
  const found = SMALL_PRINT.exec(markdown);
  if (found === null) return { text: markdown, lines: [] };
  const lines = (found[1] ?? "").split("\n").flatMap((line): SmallLine[] => {
    const [, number = "", label = "", url = ""] = SMALL_LINE.exec(line) ?? [];
    return url === "" ? [] : [{ number, label: label.replace(/\\(.)/g, "$1"), url }];
  });
  return { text: markdown.slice(0, found.index), lines };
}

/** Changes a line that the model wrote if it looks like the heading of the small print. */
export function withoutSmallPrint(text: string): string {
  return text.replaceAll(HEADING, HEADING.slice(3));
}
