/** Makes text from outside safe for an error or a log line. */
export interface SafeText {
  /** For a sentence: returns one short line without anything that looks like a key. */
  sentence(text: string): string;
  /** For an id or a name: returns one short line without the configured keys. Keeps long random ids. */
  name(text: string): string;
}

const MAX_SENTENCE_CHARS = 300;
const MAX_NAME_CHARS = 120;
/** Only this much of a text is checked with the patterns, so that a hostile text costs little time. */
const MAX_INPUT_CHARS = 4_000;
/** Shorter secrets stay in the text, because they would match ordinary words. */
const MIN_SECRET_CHARS = 6;
const HIDDEN = "[hidden]";

const KEYS: ReadonlyArray<readonly [RegExp, string]> = [
  [/\b(Bearer|Basic)\s+[^\s"',;]+/gi, `$1 ${HIDDEN}`],
  [/((?:api|access|secret|auth)[-_ ]?(?:key|token)["']?\s*[:=]\s*["']?)[^\s"',;}]+/gi, `$1${HIDDEN}`],
  [/([?&](?:key|api_key|token|access_token|sig|signature|x-[\w-]+)=)[^&\s"'<>]+/gi, `$1${HIDDEN}`],
  // The prefixes of well-known keys. Some servers replace part of a key with asterisks.
  [/\b(?:sk|pk|rk|gsk|xox[a-z]|xapp|gh[a-z]|hf)[-_][\w*.-]{6,}/gi, HIDDEN],
  [/\bAIza[\w-]{10,}/g, HIDDEN],
  [/\beyJ[\w-]{8,}\.[\w.-]+/g, HIDDEN],
  // Long random text counts as a key.
  [/(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{24,}/g, HIDDEN],
];

// Control characters, bidirectional marks and zero-width characters could change how a log line looks.
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu;

/** `secrets` are removed in addition to everything that looks like a key. */
export function createSafeText(secrets: readonly string[]): SafeText {
  const exact = secrets
    .filter((secret) => secret.length >= MIN_SECRET_CHARS)
    .flatMap((secret) => [secret, encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1)]);

  function flatten(text: string): string {
    let flat = text;
    for (const secret of exact) flat = flat.replaceAll(secret, HIDDEN);
    return flat.slice(0, MAX_INPUT_CHARS).replace(INVISIBLE, " ").trim();
  }

  return {
    sentence(text) {
      const safe = KEYS.reduce((rest, [pattern, replacement]) => rest.replace(pattern, replacement), flatten(text));
      return shorten(safe, MAX_SENTENCE_CHARS);
    },
    name: (text) => shorten(flatten(text), MAX_NAME_CHARS),
  };
}

function shorten(text: string, maxChars: number): string {
  return (text.length > maxChars ? `${text.slice(0, maxChars - 1)}…` : text).toWellFormed();
}
