interface RequestErrorOptions {
  cause?: unknown;
  field?: string;
}

/** The server cannot do what the page requested. The message is one sentence for the person at the page. */
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

/** The process is starting or stopping. The same request succeeds later. */
export class AwayError extends RequestError {
  constructor() {
    super(503, "Palaver isn't accepting messages right now. Try again soon.");
  }
}

/** SQLite's primary result codes for a disk that cannot be written: read-only, I/O error, full. */
const DISK_CODES = new Set([8, 10, 13]);

export function isDiskTrouble(error: unknown): boolean {
  // The low byte of an extended code is the primary code.
  return error instanceof Error && "errcode" in error && DISK_CODES.has(Number(error.errcode) & 0xff);
}
