import { LoggableError } from "../port/errors.ts";

/**
 * `foreign`: not at an allowed address. `private`: the host resolves to a private network. `redirect`: the host
 * redirected instead of sending the bytes. `page`: the response was a web page, usually for login. `forbidden`: the bot
 * has no access. `gone`: the file no longer exists. `too-large`: over the size limit. `late`: timed out. `encoded`:
 * compressed although the request did not allow it. `unavailable`: anything else.
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

/** A file is not available. The message completes "FILE …" for people, and contains no address, token or header. */
export class FileProblem extends LoggableError {
  override readonly name = "FileProblem";
  readonly kind: FileProblemKind;

  constructor(kind: FileProblemKind, message: string, options: { cause?: unknown } = {}) {
    super(message, options);
    this.kind = kind;
  }
}

export function findFileProblem(error: unknown): FileProblem | undefined {
  let at = error;
  // A chain of causes can be circular.
  for (let depth = 0; depth < 5 && at instanceof Error; depth++) {
    if (at instanceof FileProblem) return at;
    at = at.cause;
  }
  return undefined;
}

const MIB = 1024 * 1024;

/** Describes a size to people: in whole MiB, rounded down, or in bytes below one MiB. */
export function toShownSize(sizeBytes: number): string {
  return sizeBytes >= MIB ? `${Math.floor(sizeBytes / MIB)} MiB` : `${sizeBytes} bytes`;
}

const MAX_NAME_CHARS = 80;
/** How many characters at the end of a long name are kept, because they include the extension. */
const TAIL_CHARS = 16;
const READ_CHARS = 1_024;

/**
 * Makes a file name safe in a sentence, an attribute or a code span: one line of at most 80 characters without control,
 * format or bidi characters, quotes, backticks, backslashes or angle brackets. Use it only to show the name.
 */
export function toShownFileName(name: string): string {
  // Limits the work on a very long name, but keeps the end with the extension.
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
