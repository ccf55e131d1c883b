const MARK = "[redacted]";

/**
 * Patterns of keys from all vendors. The first group is not redacted. A preceding letter or digit prevents a match,
 * because "task-…" does not contain a key "sk-…".
 */
const FORMS: readonly RegExp[] = [
  /(?<![A-Za-z0-9])sk-[\w-]{8,}/,
  /(\bBearer\s+)[^\s"'\\,;]{6,}/i,
  // Parameters whose values sign an address, even if that address is itself a parameter.
  /((?:[?&]|%3F|%26)[\w.-]{0,40}(?:sig|signature|hm|token|key|secret|password|credential)(?:=|%3D))[^\s"'<>\\&]+/i,
  /(:\/\/)[^\s/"'<>@:]{0,100}:[^\s/"'<>@]{1,300}(?=@)/,
];

/** Cheaper patterns for lines of JSON. They match everything that the exact patterns match, and more. */
const SUSPICIOUS = /sk-|bearer\s|(?:sig|signature|hm|token|key|secret|password|credential)(?:=|%3D)|:\/\/[^\s/"]*@/i;

/** Shorter secrets are not redacted, because they could match ordinary words. */
const MIN_SECRET_CHARS = 6;

export interface Redactor {
  text: (text: string) => string;
  /** Redacts one line of JSON. The result is still one line of JSON. */
  line: (line: string) => string;
}

/**
 * Creates a redactor for exact secret values, also in their JSON and URL encodings, and for everything that looks like
 * a key. `tokens` are patterns of the platforms' tokens.
 */
export function createRedactor(secrets: readonly string[], tokens: readonly RegExp[]): Redactor {
  const forms = [...tokens, ...FORMS].map(({ source, flags }) => new RegExp(source, `${flags}g`));
  const hints = tokens.map(toHint);
  const variants = [...new Set(secrets.filter((secret) => secret.length >= MIN_SECRET_CHARS).flatMap(toVariants))]
    // Replace the longest secrets first: if one secret contains another, replacing the shorter one first would leave
    // the rest of the longer one visible.
    .sort((a, b) => b.length - a.length);
  const exact =
    variants.length === 0 ? undefined : new RegExp(variants.map((variant) => RegExp.escape(variant)).join("|"), "gi");

  function text(plain: string): string {
    let clean = exact === undefined ? plain : plain.replace(exact, MARK);
    for (const pattern of forms) {
      clean = clean.replace(pattern, (_, kept: unknown) => (typeof kept === "string" ? kept + MARK : MARK));
    }
    return clean;
  }

  function line(json: string): string {
    // Parse only suspicious lines, because parsing a line costs more than writing it.
    if (![SUSPICIOUS, ...hints].some((hint) => hint.test(json)) && (exact === undefined || json.search(exact) === -1))
      return json;
    try {
      return JSON.stringify(redactValue(JSON.parse(json), text)) + (json.endsWith("\n") ? "\n" : "");
    } catch {
      return `${JSON.stringify({ msg: text(json) })}\n`;
    }
  }

  return { text, line };
}

/** Removes the lookbehind: in JSON, a token can follow an escape such as `\n`, whose last character is a letter. */
function toHint({ source, flags }: RegExp): RegExp {
  return new RegExp(source.replace(/^\(\?<!\[[^\]]*\]\)/, ""), flags);
}

function toVariants(secret: string): string[] {
  const escaped = JSON.stringify(secret).slice(1, -1);
  const escapedTwice = JSON.stringify(escaped).slice(1, -1);
  const encoded = encodeURIComponent(secret);
  return [secret, escaped, escapedTwice, encoded, encodeURIComponent(encoded)];
}

function redactValue(value: unknown, text: (plain: string) => string): unknown {
  if (typeof value === "string") return text(value);
  if (Array.isArray(value)) return value.map((item) => redactValue(item, text));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [text(key), redactValue(item, text)]));
}
