const MARK = "[redacted]";

/**
 * The shapes of keys of all vendors. The first group, where there is one, is kept. They are looked for in plain
 * text, so a letter or digit before it means that it is part of a longer word: "task-…" is not "sk-…".
 */
const PATTERNS: readonly RegExp[] = [
  // Slack: bot, user, refresh and app-level tokens, and the addresses that are keys themselves.
  /(?<![A-Za-z0-9])xox[a-z](?:\.xox[a-z])?-[\w-]{4,}/g,
  /(?<![A-Za-z0-9])xapp-[\w-]{4,}/g,
  /(hooks\.slack\.com\/)[^\s"'<>]+/g,
  // Discord: bot tokens (id.time.hmac), and the tokens inside webhook and interaction addresses.
  /(?<![\w-])[\w-]{23,30}\.[\w-]{6,7}\.[\w-]{27,}/g,
  /(\/(?:webhooks|interactions)\/\d{5,20}\/)[\w-]{20,}/g,
  /(?<![A-Za-z0-9])sk-[\w-]{8,}/g,
  /(\bBearer\s+)[^\s"'\\,;]{6,}/gi,
  // Signed addresses: the parameters that make them valid. Also when the address is itself a parameter.
  /((?:[?&]|%3F|%26)[\w.-]{0,40}(?:sig|signature|hm|token|key|secret|password|credential)(?:=|%3D))[^\s"'<>\\&]+/gi,
  /(:\/\/)[^\s/"'<>@:]{0,100}:[^\s/"'<>@]{1,300}(?=@)/g,
];

/** The same patterns for JSON, where `\n` may stand right before a key: finds too much rather than too little. */
const SUSPICIOUS =
  /xox[a-z]|xapp-|sk-|bearer\s|hooks\.slack|\/(?:webhooks|interactions)\/|[\w-]{6}\.[\w-]{27}|(?:sig|signature|hm|token|key|secret|password|credential)(?:=|%3D)|:\/\/[^\s/"]*@/i;

/** A secret shorter than this would take ordinary words out of the log. */
const MIN_SECRET_CHARS = 6;

export interface Redactor {
  text: (text: string) => string;
  /** One line of JSON without secrets in its keys or values; still one line of JSON. */
  line: (line: string) => string;
}

/** Takes out these exact values, also escaped for JSON or an address, and whatever looks like a key. */
export function createRedactor(secrets: readonly string[]): Redactor {
  const variants = [...new Set(secrets.filter((secret) => secret.length >= MIN_SECRET_CHARS).flatMap(toVariants))]
    // Longest first, or a secret that contains another would leave its rest behind.
    .sort((a, b) => b.length - a.length);
  const exact =
    variants.length === 0 ? undefined : new RegExp(variants.map((variant) => RegExp.escape(variant)).join("|"), "gi");

  function text(plain: string): string {
    let clean = exact === undefined ? plain : plain.replace(exact, MARK);
    for (const pattern of PATTERNS) {
      clean = clean.replace(pattern, (_, kept: unknown) => (typeof kept === "string" ? kept + MARK : MARK));
    }
    return clean;
  }

  function line(json: string): string {
    // Reading the line back costs more than the log line itself, so only suspicious ones are.
    if (!SUSPICIOUS.test(json) && (exact === undefined || json.search(exact) === -1)) return json;
    try {
      return JSON.stringify(redactValue(JSON.parse(json), text)) + (json.endsWith("\n") ? "\n" : "");
    } catch {
      return `${JSON.stringify({ msg: text(json) })}\n`;
    }
  }

  return { text, line };
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
