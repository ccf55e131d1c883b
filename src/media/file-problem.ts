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

/**
 * A file could not be had. The message is for people and completes the sentence that begins with the file's name,
 * "it …"; there is no address, token or header in it.
 */
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
