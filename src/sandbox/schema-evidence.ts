/** Zones for the places people name. */
const ZONES: Readonly<Record<string, string>> = {
  tokyo: "Asia/Tokyo",
  東京: "Asia/Tokyo",
  japan: "Asia/Tokyo",
  日本: "Asia/Tokyo",
  london: "Europe/London",
  paris: "Europe/Paris",
  berlin: "Europe/Berlin",
  "new york": "America/New_York",
  "san francisco": "America/Los_Angeles",
  "los angeles": "America/Los_Angeles",
  sydney: "Australia/Sydney",
  singapore: "Asia/Singapore",
  utc: "UTC",
};

const USUAL: Readonly<Record<string, string>> = {
  date: "2026-01-01",
  time: "12:00:00Z",
  "date-time": "2026-01-01T12:00:00Z",
  email: "ada@example.com",
  uri: "https://example.com/",
  url: "https://example.com/",
  uuid: "00000000-0000-4000-8000-000000000000",
};

const ZONE_NAME =
  /\b(?:Africa|America|Antarctica|Asia|Atlantic|Australia|Europe|Indian|Pacific|Etc)\/[\w+-]+(?:\/[\w-]+)?/g;
const ZONE_FIELD = /zone|^tz$/i;
const PLACE_FIELD = /city|location|place|country/i;
const COUNT_FIELD = /count|number|amount/i;
const COUNTS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
/** No part of a ratio or of a time of day. */
const NUMBER = /(?<![\d:.])-?\d+(?:\.\d+)?(?![\d.]*:\d)/;
const QUERY_FIELD = /query|search|question|topic|text|prompt|description|keyword|message|term/i;

/** The field's value in the words: `name: value`, then hints of its name, such as a zone, place, date or number. */
export function readEvidence(name: string, type: string, words: string, format: unknown): string | undefined {
  const told = readTold(name, words);
  if (type === "number" || type === "integer")
    return told !== undefined && isNumber(told) ? told : (NUMBER.exec(words)?.[0] ?? readCount(name, words));
  if (type !== "string") return told;
  if (told !== undefined) return told;
  if (ZONE_FIELD.test(name)) return readZones(words)[0];
  if (PLACE_FIELD.test(name)) return readPlaces(words)[0];
  const formatted = readFormat(format ?? name, words);
  if (formatted !== undefined) return formatted;
  return QUERY_FIELD.test(name) ? readQuery(words) : undefined;
}

/** A value that is valid for a field of this name or format, where the words hold none. */
export function usualValue(name: string, format: unknown): string | undefined {
  if (ZONE_FIELD.test(name)) return "UTC";
  if (PLACE_FIELD.test(name)) return "Tokyo";
  return USUAL[String(format)];
}

/** Every zone the words name, in their order and each once. */
export function readZones(words: string): string[] {
  const named = Array.from(words.matchAll(ZONE_NAME), (match) => ({ at: match.index, zone: match[0] }));
  const lower = words.toLowerCase();
  const placed = Object.entries(ZONES).flatMap(([place, zone]) => {
    const at = findWord(lower, place);
    return at === -1 || named.some((other) => other.at <= at && at < other.at + other.zone.length)
      ? []
      : [{ at, zone }];
  });
  const sorted = [...named, ...placed].toSorted((a, b) => a.at - b.at).map(({ zone }) => zone);
  return [...new Set(sorted)];
}

/** Every place behind "in" or "for", in their order. */
export function readPlaces(words: string): string[] {
  const PLACE = "\\p{Lu}[\\p{L}'-]+(?: \\p{Lu}[\\p{L}'-]+)*";
  const lists = words.matchAll(new RegExp(`\\b(?:in|for|at|and) (?:in )?(${PLACE})`, "gu"));
  return [...new Set(Array.from(lists, (match) => match[1] ?? "").filter(Boolean))];
}

function readTold(name: string, words: string): string | undefined {
  if (name === "") return undefined;
  const parts = name.split(/[_-]/).map((part) => RegExp.escape(part));
  const match = new RegExp(
    `(?<![\\w])${parts.join("[ _-]")}\\s*(?:=|:|\\bis\\b)\\s*(?:"([^"]*)"|'([^']*)'|\`([^\`]*)\`|([^\\s,;]+))`,
    "i",
  ).exec(words);
  const value = match?.[1] ?? match?.[2] ?? match?.[3] ?? match?.[4]?.replace(/[.?!]+$/, "");
  return value === "" ? undefined : value;
}

/** Reads a count from words, as in "two cats". */
function readCount(name: string, words: string): string | undefined {
  if (!COUNT_FIELD.test(name)) return undefined;
  const spoken = new RegExp(`\\b(?:${COUNTS.join("|")})\\b`, "i").exec(words)?.[0];
  return spoken === undefined ? undefined : String(COUNTS.indexOf(spoken.toLowerCase()) + 1);
}

function readFormat(format: unknown, words: string): string | undefined {
  switch (format) {
    case "date":
      return /\b\d{4}-\d{2}-\d{2}\b/.exec(words)?.[0];
    case "date-time":
      return /\b\d{4}-\d{2}-\d{2}T[\d:.]+(?:Z|[+-]\d{2}:\d{2})/.exec(words)?.[0];
    case "email":
      return /[\w.+-]+@[\w-]+(?:\.[\w-]+)+/.exec(words)?.[0];
    case "uri":
    case "url":
      return /https?:\/\/[^\s<>"')\]]+/.exec(words)?.[0];
    default:
      return undefined;
  }
}

/** The subject of a search or a drawing: the quoted part, else what follows "for", "about" or "of", else all. */
function readQuery(words: string): string | undefined {
  const quoted = /"([^"\n]+)"|“([^”\n]+)”|「([^」\n]+)」/.exec(words);
  const value =
    quoted?.[1] ?? quoted?.[2] ?? quoted?.[3] ?? /\b(?:for|about|of)\s+([^.?!\n]+)/i.exec(words)?.[1] ?? words;
  return value.trim() === "" ? undefined : value.trim();
}

function findWord(text: string, word: string): number {
  if (/[^\x20-\x7e]/.test(word)) return text.indexOf(word);
  return text.search(new RegExp(`\\b${word}\\b`));
}

function isNumber(text: string): boolean {
  return text.trim() !== "" && Number.isFinite(Number(text));
}
