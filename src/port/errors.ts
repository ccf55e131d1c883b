export interface LoggableErrorOptions {
  cause?: unknown;
  /** Words of other parties: people, the model, a gateway, a platform; or a file's name. */
  quote?: string;
}

/**
 * An error in this program's own words, safe to log. A quote can follow at the end of its message, and is logged only
 * at `debug`.
 */
export class LoggableError extends Error {
  override readonly name: string = "LoggableError";
  /** The quoted words at the end of the message; "" for none. */
  readonly quote: string;
  /** The part of the message that is safe to log. */
  logMessage: string;

  constructor(words: string, { cause, quote = "" }: LoggableErrorOptions = {}) {
    super(words + quote, { cause });
    this.quote = quote;
    this.logMessage = words;
  }
}

/**
 * `rate-limited`: nothing was written; retry after `retryAfterMs`. `gone`: the message or its channel no longer exists.
 * `forbidden`: the bot cannot write there. `rejected`: the platform refuses this body. `filtered`: a filter of the
 * channel's people blocks these words. `sealed`: the message accepts no further edits; new messages can be posted.
 * `unavailable`: it may or may not have been written; a retry is safe.
 */
export type SinkErrorKind = "rate-limited" | "gone" | "forbidden" | "rejected" | "filtered" | "sealed" | "unavailable";

export interface SinkErrorOptions {
  cause?: unknown;
  quote?: string;
  retryAfterMs?: number;
  missing?: string;
  shownLength?: number;
}

/** A platform did not accept a write. Callers branch on `kind`; the message is for the log. */
export class SinkError extends LoggableError {
  override readonly name = "SinkError";
  readonly kind: SinkErrorKind;
  /** The wait that the platform requires; only with `rate-limited`. */
  readonly retryAfterMs: number | undefined;
  /** The permission that the bot lacks, by the platform's name for it; only with `forbidden`, if known. */
  readonly missing: string | undefined;

  /** UTF-16 units of the draft that the message shows; 0 if it shows another text. Only with `sealed`. */
  readonly shownLength: number | undefined;

  constructor(kind: SinkErrorKind, message: string, options: SinkErrorOptions = {}) {
    super(message, options);
    this.kind = kind;
    this.retryAfterMs = options.retryAfterMs;
    this.missing = options.missing;
    this.shownLength = options.shownLength;
  }
}

/** The message of any thrown value. */
export function describeError(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Names why a request got no complete answer, such as ECONNRESET. The message of the error may quote people's words. */
export function nameNetworkError(error: unknown): string {
  for (let at = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth += 1) {
    const code = "code" in at ? at.code : undefined;
    if (typeof code === "string" && /^[A-Z][A-Z_0-9]{2,40}$/.test(code)) return code;
  }
  return error instanceof Error ? error.name : "unknown";
}

/** The platform cannot search, or cannot read a place. The message says why in one sentence for people, and what they can do about it. */
export class SearchProblem extends Error {
  override readonly name = "SearchProblem";
}
