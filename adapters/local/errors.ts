interface RequestErrorOptions {
  cause?: unknown;
  /** The field of the form that is to be mended. */
  field?: string;
}

/** A request of the page that cannot be done. The message is one sentence for the person at the page. */
export class RequestError extends Error {
  override readonly name = "RequestError";
  readonly status: 400 | 403 | 404 | 409 | 413 | 429 | 503;
  readonly field: string | undefined;

  constructor(status: RequestError["status"], message: string, options: RequestErrorOptions = {}) {
    super(message, options);
    this.status = status;
    this.field = options.field;
  }
}

/** The process is just ending or beginning: the same request will be taken by the next one. */
export class AwayError extends RequestError {
  constructor() {
    super(503, "Palaver is not taking messages just now. Try again in a moment.");
  }
}

/** SQLite's primary result codes for a disk that takes nothing at the moment: read-only, I/O error, full. */
const DISK_CODES = new Set([8, 10, 13]);

/** True where something could not be stored because the disk takes nothing at the moment. */
export function isDiskTrouble(error: unknown): boolean {
  // The low byte of an extended code is the primary one.
  return error instanceof Error && "errcode" in error && DISK_CODES.has(Number(error.errcode) & 0xff);
}
