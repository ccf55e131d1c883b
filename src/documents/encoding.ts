/** The beginning of a file is enough to tell its encoding. */
const SAMPLE_BYTES = 64 * 1024;

/** True for bytes that are text in none of the encodings known here. Looks at the beginning alone. */
export function hasNul(bytes: Uint8Array): boolean {
  return encodingOf(bytes) === "utf-8" && bytes.subarray(0, SAMPLE_BYTES).includes(0);
}

/** True for bytes that begin as `decodeUnicode` decodes them. */
export function isUnicode(bytes: Uint8Array): boolean {
  const sample = bytes.subarray(0, SAMPLE_BYTES);
  try {
    // As a stream, so that a character at the end of the sample can be incomplete.
    const decoder = new TextDecoder(encodingOf(bytes), { fatal: true });
    return !decoder.decode(sample, { stream: sample.byteLength < bytes.byteLength }).includes("\0");
  } catch {
    return false;
  }
}

/** Decodes UTF-8 without NULs, or UTF-16 behind a byte order mark. The mark is left out. Undefined: it is neither. */
export function decodeUnicode(bytes: Uint8Array): string | undefined {
  const text = decodeAs(encodingOf(bytes), bytes);
  return text?.includes("\0") === false ? text : undefined;
}

/** Decodes Unicode, then what `charset`, the text's own claim, says; else Japanese encodings and Windows-1252. */
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
    // Not of that encoding, or one that does not exist.
    return undefined;
  }
}

const TEXT_CONTROLS: ReadonlySet<number> = new Set([0x09, 0x0a, 0x0c, 0x0d, 0x1b]);
/** More bytes beyond ASCII than this have no text in a Western encoding. */
const MAX_WESTERN_SHARE = 0.3;
const JAPANESE = /[\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Han}、。]/gu;
const MIN_JAPANESE_SHARE = 0.8;

/** True for bytes that no text has in any encoding known here. Looks at the beginning alone. */
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
