import { LoggableError } from "../port/errors.ts";

/**
 * `foreign`: kept somewhere that is not fetched from. `private`: its host leads into a private network. `redirect`:
 * another place is named instead of the bytes. `page`: a web page, most often to log in, came instead of the bytes.
 * `forbidden`: the bot may not read it. `gone`: it is not there any more. `too-large`: more bytes than asked for.
 * `late`: not there in time. `encoded`: compressed on the way, which was not asked for. `unavailable`: anything else.
 */
export type FileProblemKind =
  | "foreign"
  | "private"
  | "redirect"
  | "page"
  | "forbidden"
  | "gone"
  | "too-large"
  | "late"
  | "encoded"
  | "unavailable";

/** A file is not available. The message completes "FILE …" for people; no address, token or header is in it. */
export class FileProblem extends LoggableError {
  override readonly name = "FileProblem";
  readonly kind: FileProblemKind;

  constructor(kind: FileProblemKind, message: string, options: { cause?: unknown } = {}) {
    super(message, options);
    this.kind = kind;
  }
}

/** The `FileProblem` an error is, or was caused by. */
export function findFileProblem(error: unknown): FileProblem | undefined {
  let at = error;
  // A chain of causes may be a circle.
  for (let depth = 0; depth < 5 && at instanceof Error; depth++) {
    if (at instanceof FileProblem) return at;
    at = at.cause;
  }
  return undefined;
}

const MIB = 1024 * 1024;

/** A size as people say it: whole MiB, rounded down, and bytes below one. */
export function toShownSize(sizeBytes: number): string {
  return sizeBytes >= MIB ? `${Math.floor(sizeBytes / MIB)} MiB` : `${sizeBytes} bytes`;
}

const MAX_NAME_CHARS = 80;
/** Characters kept of a long name's end, where its extension stands. */
const TAIL_CHARS = 16;
const READ_CHARS = 1_024;

/**
 * A file's name as it may stand inside a sentence, an attribute or a code span: one line without control, format or
 * bidi characters, quotes, backticks, backslashes or angle brackets, and at most 80 characters. For showing only.
 */
export function toShownFileName(name: string): string {
  // Bounds the work; the end stays, because the extension stands there.
  const bounded = name.length > 2 * READ_CHARS ? name.slice(0, READ_CHARS) + name.slice(-READ_CHARS) : name;
  const clean = bounded
    .replace(/[\p{Z}\s]+/gu, " ")
    .replace(/\p{C}/gu, "")
    .replace(/["“”„«»`]/g, "'")
    .replace(/[<>\\]/g, "_")
    .trim();
  if (clean === "") return "unnamed file";
  const chars = Array.from(clean);
  if (chars.length <= MAX_NAME_CHARS) return clean;
  return [...chars.slice(0, MAX_NAME_CHARS - TAIL_CHARS - 1), "…", ...chars.slice(-TAIL_CHARS)].join("");
}
