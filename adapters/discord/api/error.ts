import { LoggableError, type LoggableErrorOptions, nameNetworkError } from "../../../src/port/errors.ts";
import { truncate } from "../../../src/text/truncate.ts";

const MAX_QUOTE_CHARS = 200;
/** The wait after a proxy in front of Discord refuses a call without a `retry-after` header. */
const SHUT_OUT_MS = 60_000;
const DEFAULT_WAIT_MS = 1_000;

export interface ApiErrorOptions extends LoggableErrorOptions {
  /** Discord's own error code; 0 if Discord gave none. */
  code: number;
  /** The HTTP status of the response; 0 if there was no response. */
  status: number;
  /** The wait that Discord requests; only with status 429. */
  retryAfterMs?: number;
  /** The network's error code if no complete response arrived, such as `ECONNREFUSED`. */
  network?: string;
  /** Only with status 429. `shared`: others used the limit up. `global`: the limit over all channels. */
  scope?: "own" | "shared" | "global";
  /** True if the response came from a proxy in front of Discord's API. */
  isForeign?: boolean;
}

/**
 * Discord refused a call or did not respond properly. The message contains the method and the code, but never the body
 * or the URL, because these contain users' texts and interaction tokens.
 */
export class ApiError extends LoggableError {
  override readonly name = "ApiError";
  readonly code: number;
  readonly status: number;
  readonly retryAfterMs: number | undefined;
  readonly network: string | undefined;
  readonly scope: "own" | "shared" | "global";
  readonly isForeign: boolean;

  constructor(message: string, options: ApiErrorOptions) {
    super(message, options);
    this.code = options.code;
    this.status = options.status;
    this.retryAfterMs = options.retryAfterMs;
    this.network = options.network;
    this.scope = options.scope ?? "own";
    this.isForeign = options.isForeign ?? false;
  }
}

/** Undefined unless the error is a rate limit. */
export function waitOf(error: unknown): number | undefined {
  return error instanceof ApiError ? error.retryAfterMs : undefined;
}

/** Discord's error code; 0 if Discord gave none. */
export function codeOf(error: unknown): number {
  return error instanceof ApiError ? error.code : 0;
}

/** True if Discord says that the object does not exist, or that the bot cannot access it. */
export function isRefused(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 403 || error.status === 404);
}

/** True if Discord may have executed the call. Only an idempotent call can be retried. */
export function isUncertain(error: unknown): boolean {
  return !(error instanceof ApiError) || error.status === 0 || error.status >= 500;
}

export interface Answered {
  status: number;
  headers: { get(name: string): string | null };
  /** Undefined if the body is not JSON. */
  data: unknown;
}

/** The error quotes nothing that the bot sent. */
export function toRefusal(method: string, { status, headers, data }: Answered): ApiError {
  const isForeign = typeof data !== "object" || data === null;
  const body = (isForeign ? {} : data) as Record<string, unknown>;
  const code = typeof body["code"] === "number" ? body["code"] : 0;
  const words = typeof body["message"] === "string" ? `: ${truncate(body["message"], MAX_QUOTE_CHARS)}` : "";
  const isShared = headers.get("x-ratelimit-scope") === "shared";
  const isGlobal = headers.get("x-ratelimit-global") !== null || body["global"] === true;
  // The body gives milliseconds, but the header only whole seconds.
  const waitMs = Math.ceil(Number(body["retry_after"] ?? headers.get("retry-after") ?? Number.NaN) * 1_000);
  const defaultMs = isForeign ? SHUT_OUT_MS : DEFAULT_WAIT_MS;
  return new ApiError(`Discord answered a ${method} with ${status}${code === 0 ? "" : ` (code ${code})`}`, {
    quote: `${words}.`,
    code,
    status,
    scope: isGlobal ? "global" : isShared ? "shared" : "own",
    isForeign,
    ...(status === 429 && { retryAfterMs: waitMs >= 0 ? waitMs : defaultMs }),
  });
}

/** The error quotes nothing that the bot sent: network errors contain only host names and ports. */
export function toNetworkError(method: string, error: unknown): ApiError {
  const network = nameNetworkError(error);
  return new ApiError(`Discord did not answer a ${method} (${network}).`, { code: 0, status: 0, network });
}
