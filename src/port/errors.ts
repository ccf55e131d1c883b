export interface LoggableErrorOptions {
  cause?: unknown;
  /** The words of others: people, the model, a gateway, a platform; or the name of a file. */
  quote?: string;
}

/** An error in this program's own words, safe to log. A quote follows at the end of its message, and is logged at `debug` only. */
export class LoggableError extends Error {
  override readonly name: string = "LoggableError";
  /** The words of others at the end of the message; "" for none. */
  readonly quote: string;
  /** The part of the message that may be logged. */
  logMessage: string;

  constructor(words: string, { cause, quote = "" }: LoggableErrorOptions = {}) {
    super(words + quote, { cause });
    this.quote = quote;
    this.logMessage = words;
  }
}

/**
 * `rate-limited`: nothing was written, try again after `retryAfterMs`. `gone`: the message or its
 * channel no longer exists. `forbidden`: the bot may not write there. `rejected`: the platform
 * refuses this body. `filtered`: a filter that people have set there does not let these words through. `sealed`: the
 * message takes no edits any more, further ones may be posted. `unavailable`: it may or may not have been written, trying
 * again is safe.
 */
export type SinkErrorKind = "rate-limited" | "gone" | "forbidden" | "rejected" | "filtered" | "sealed" | "unavailable";

export interface SinkErrorOptions {
  cause?: unknown;
  quote?: string;
  retryAfterMs?: number;
  missing?: string;
  shownLength?: number;
}

/** A platform did not take a write. `kind` is what callers branch on; the message is for the log. */
export class SinkError extends LoggableError {
  override readonly name = "SinkError";
  readonly kind: SinkErrorKind;
  /** Wait the platform asked for; only with `rate-limited`. */
  readonly retryAfterMs: number | undefined;
  /** The permission that the bot lacks, by the platform's name for it; only with `forbidden`, where it is known. */
  readonly missing: string | undefined;

  /** UTF-16 units of the draft that the message shows; 0: another text. Only with `sealed`. */
  readonly shownLength: number | undefined;

  constructor(kind: SinkErrorKind, message: string, options: SinkErrorOptions = {}) {
    super(message, options);
    this.kind = kind;
    this.retryAfterMs = options.retryAfterMs;
    this.missing = options.missing;
    this.shownLength = options.shownLength;
  }
}

/** The words of whatever was thrown. */
export function describeError(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
