export interface LoggableErrorOptions {
  cause?: unknown;
  /** Text that others wrote (people, the model, a gateway, a platform), or a file's name. */
  quote?: string;
}

/** An error whose message is safe to log. The message can end with a quote, which the log shows only at `debug`. */
export class LoggableError extends Error {
  override readonly name: string = "LoggableError";
  readonly quote: string;
  /** The message without the quote. */
  logMessage: string;

  constructor(words: string, { cause, quote = "" }: LoggableErrorOptions = {}) {
    super(words + quote, { cause });
    this.quote = quote;
    this.logMessage = words;
  }
}

/**
 * `rate-limited`: nothing was written; retry after `retryAfterMs`. `gone`: the message or its channel no longer exists.
 * `forbidden`: the bot cannot write there. `rejected`: the platform refuses this text or file. `filtered`: a word
 * filter of the channel blocks this text. `sealed`: the message accepts no further edits; new messages can be posted.
 * `unavailable`: no one knows whether the message was written; a retry is safe.
 */
export type SinkErrorKind = "rate-limited" | "gone" | "forbidden" | "rejected" | "filtered" | "sealed" | "unavailable";

export interface SinkErrorOptions {
  cause?: unknown;
  quote?: string;
  retryAfterMs?: number;
  missing?: string;
  shownLength?: number;
}

/** Reports that a platform did not accept a write. Callers branch on `kind`; the message is for the log. */
export class SinkError extends LoggableError {
  override readonly name = "SinkError";
  readonly kind: SinkErrorKind;
  /** How long the platform requires the caller to wait; only with `rate-limited`. */
  readonly retryAfterMs: number | undefined;
  /** The platform's name for the permission that the bot lacks, if known; only with `forbidden`. */
  readonly missing: string | undefined;

  /**
   * Length of the shown part of the draft, in UTF-16 units; 0 if the message shows another text. Only with `sealed`.
   */
  readonly shownLength: number | undefined;

  constructor(kind: SinkErrorKind, message: string, options: SinkErrorOptions = {}) {
    super(message, options);
    this.kind = kind;
    this.retryAfterMs = options.retryAfterMs;
    this.missing = options.missing;
    this.shownLength = options.shownLength;
  }
}

export function describeError(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Names why a request got no complete answer, such as ECONNRESET. Safe to log, unlike the error's message. */
export function nameNetworkError(error: unknown): string {
  for (let at = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth += 1) {
    const code = "code" in at ? at.code : undefined;
    if (typeof code === "string" && /^[A-Z][A-Z_0-9]{2,40}$/.test(code)) return code;
  }
  return error instanceof Error ? error.name : "unknown";
}

/** The platform cannot search or read a channel. The message is one sentence for people: why, and what they can do. */
export class SearchProblem extends Error {
  override readonly name = "SearchProblem";
}
