/** A file's encoding is detected in its first bytes, up to this many. */
const SAMPLE_BYTES = 64 * 1024;

/** True if the beginning contains a NUL, which occurs in no supported encoding of text. */
export function hasNul(bytes: Uint8Array): boolean {
  return encodingOf(bytes) === "utf-8" && bytes.subarray(0, SAMPLE_BYTES).includes(0);
}

/** True if `decodeUnicode` can decode the beginning of the bytes. */
export function isUnicode(bytes: Uint8Array): boolean {
  const sample = bytes.subarray(0, SAMPLE_BYTES);
  try {
    // Decode as a stream, because the sample can end within a character.
    const decoder = new TextDecoder(encodingOf(bytes), { fatal: true });
    return !decoder.decode(sample, { stream: sample.byteLength < bytes.byteLength }).includes("\0");
  } catch {
    return false;
  }
}

/** Decodes UTF-8 without NULs, or UTF-16 with a byte order mark, and drops the mark; undefined for other bytes. */
export function decodeUnicode(bytes: Uint8Array): string | undefined {
  const text = decodeAs(encodingOf(bytes), bytes);
  return text?.includes("\0") === false ? text : undefined;
}

/** Decodes a text as Unicode, or else in its declared encoding (`charset`), or else as Japanese or Windows-1252. */
export function decodeText(bytes: Uint8Array, charset?: string): string | undefined {
  const unicode = decodeUnicode(bytes);
  if (unicode !== undefined || hasControls(bytes)) return unicode;
  const declared = charset === undefined ? undefined : decodeAs(charset, bytes);
  return declared ?? decodeJapanese(bytes) ?? decodeWestern(bytes);
}

function encodingOf([first, second]: Uint8Array): string {
  if (first === 0xff && second === 0xfe) return "utf-16le";
  if (first === 0xfe && second === 0xff) return "utf-16be";
  return "utf-8";
}

function decodeAs(encoding: string, bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder(encoding, { fatal: true }).decode(bytes);
  } catch {
    // The encoding is unknown, or the bytes are invalid in it.
    return undefined;
  }
}

const TEXT_CONTROLS: ReadonlySet<number> = new Set([0x09, 0x0a, 0x0c, 0x0d, 0x1b]);
/** If a larger share of a text's bytes is outside ASCII, the text is not in a Western encoding. */
const MAX_WESTERN_SHARE = 0.3;
const JAPANESE = /[\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Han}、。]/gu;
const MIN_JAPANESE_SHARE = 0.8;

/** True if the beginning contains control characters that do not occur in text. */
function hasControls(bytes: Uint8Array): boolean {
  return bytes.subarray(0, SAMPLE_BYTES).some((byte) => byte < 0x20 && !TEXT_CONTROLS.has(byte));
}

function decodeWestern(bytes: Uint8Array): string | undefined {
  const sample = bytes.subarray(0, SAMPLE_BYTES);
  const foreign = sample.reduce((count, byte) => (byte >= 0x80 ? count + 1 : count), 0);
  return foreign > sample.byteLength * MAX_WESTERN_SHARE ? undefined : decodeAs("windows-1252", bytes);
}

function decodeJapanese(bytes: Uint8Array): string | undefined {
  for (const encoding of ["shift_jis", "euc-jp"]) {
    const text = decodeAs(encoding, bytes);
    const foreign = text?.slice(0, SAMPLE_BYTES).replace(/\p{ASCII}/gu, "") ?? "";
    const japanese = foreign.match(JAPANESE)?.length ?? 0;
    if (foreign !== "" && japanese >= foreign.length * MIN_JAPANESE_SHARE) return text;
  }
  return undefined;
}
