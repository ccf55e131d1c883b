import { LoggableError, type LoggableErrorOptions } from "../../../src/port/errors.ts";

export interface ApiErrorOptions extends LoggableErrorOptions {
  /** HTTP status. */
  status: number;
  /** Discord's own code, 0 where it gave none. */
  code: number;
  /** Wait that was asked for; only with status 429. */
  retryAfterMs?: number;
  /** With status 429: `shared` was used up by others, `global` is the limit over all channels. */
  scope?: "own" | "shared" | "global";
  /** The answer came from something in front of Discord's API. */
  isForeign?: boolean;
}

/**
 * Discord refused a call or did not answer it properly. The message names the method and the code, never the body
 * or the address: they hold what people wrote, and interaction tokens.
 */
export class ApiError extends LoggableError {
  override readonly name = "ApiError";
  readonly status: number;
  readonly code: number;
  readonly retryAfterMs: number | undefined;
  readonly scope: "own" | "shared" | "global";
  readonly isForeign: boolean;

  constructor(message: string, options: ApiErrorOptions) {
    super(message, options);
    this.status = options.status;
    this.code = options.code;
    this.retryAfterMs = options.retryAfterMs;
    this.scope = options.scope ?? "own";
    this.isForeign = options.isForeign ?? false;
  }
}

/** Discord's code for what went wrong, 0 when there is none. */
export function codeOf(error: unknown): number {
  return error instanceof ApiError ? error.code : 0;
}

/** True where Discord says that there is no such thing, or that the bot may not have it. */
export function isRefused(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 403 || error.status === 404);
}

/** True where nobody knows if the call was carried out: only an idempotent call may follow. */
export function isUncertain(error: unknown): boolean {
  return !(error instanceof ApiError) || error.status >= 500;
}
