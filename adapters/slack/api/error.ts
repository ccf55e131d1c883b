import { LoggableError, type LoggableErrorOptions } from "../../../src/port/errors.ts";

export interface SlackApiErrorOptions extends LoggableErrorOptions {
  /** Slack's own word for it, such as `not_in_channel`; "" where it gave none. */
  code: string;
  /** Of the HTTP answer; 0 where there was none. */
  status: number;
  /** Wait that was asked for; only with a refusal for the rate. */
  retryAfterMs?: number;
  /** The scope that was missing. */
  needed?: string;
}

/**
 * Slack refused a call or did not answer it properly. The message names the method and Slack's word, never the
 * arguments: they hold what people wrote.
 */
export class SlackApiError extends LoggableError {
  override readonly name = "SlackApiError";
  readonly method: string;
  readonly status: number;
  readonly retryAfterMs: number | undefined;
  readonly needed: string | undefined;
  /** As the errors of Slack's own client have it. */
  readonly data: { readonly error: string };

  constructor(method: string, message: string, options: SlackApiErrorOptions) {
    super(message, options);
    this.method = method;
    this.status = options.status;
    this.retryAfterMs = options.retryAfterMs;
    this.needed = options.needed;
    this.data = { error: options.code };
  }

  get code(): string {
    return this.data.error;
  }
}

/** Slack carried out nothing and does not say why, or perhaps carried it out: only what bears repeating may follow. */
const UNCERTAIN_CODES = new Set([
  "",
  "fatal_error",
  "internal_error",
  "messaging_processing_failed",
  "request_timeout",
  "service_unavailable",
  "team_added_to_org",
  "update_failed",
]);

/** Slack's word for what went wrong, "" when there is none. */
export function codeOf(error: unknown): string {
  return error instanceof SlackApiError ? error.code : "";
}

/** Whether nobody knows if the call was carried out. */
export function isUncertain(error: unknown): boolean {
  if (!(error instanceof SlackApiError)) return true;
  return error.retryAfterMs === undefined && UNCERTAIN_CODES.has(error.code) && error.status !== 404;
}
