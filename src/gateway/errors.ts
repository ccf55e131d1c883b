import { LoggableError, type LoggableErrorOptions } from "../port/errors.ts";

/**
 * `unreachable`: no connection, or no response head. `rate-limited`: 429. `overloaded`: 5xx, or a 4xx that can pass
 * (408, 409, 425). `unauthorized`: 401 or 403. `rejected`: any other 4xx, a 5xx that cannot pass (501, 505), an account
 * without credit, or a request that breaks the interface's rules and was not sent. `malformed`: the response doesn't
 * follow the interface (HTML, nothing, broken events). `stalled`: no data in time. `interrupted`: the answer broke off,
 * or contained an error from the gateway.
 */
export const GATEWAY_ERROR_KINDS = [
  "unreachable",
  "rate-limited",
  "overloaded",
  "unauthorized",
  "rejected",
  "malformed",
  "stalled",
  "interrupted",
] as const;

export type GatewayErrorKind = (typeof GATEWAY_ERROR_KINDS)[number];

/** The cause of a refusal, if the gateway names one that people can fix. */
export type GatewayErrorReason = "no-credit" | "unknown-model" | "too-long" | "filtered";

export interface GatewayErrorOptions extends LoggableErrorOptions {
  status?: number | undefined;
  reason?: GatewayErrorReason | undefined;
  /** `error.type`, `error.code` and `error.param` from the gateway's error object. */
  type?: string | undefined;
  code?: string | undefined;
  param?: string | undefined;
  /** The wait that the gateway requires, in milliseconds. */
  retryAfterMs?: number | undefined;
  /** True if the message was not in an error object, so another program may have sent it instead of the gateway. */
  isFormless?: boolean;
  /** True if the connection ended after the request was sent, so the gateway may have processed it. */
  isCut?: boolean;
  /** True if Palaver made no call, because the model is paused. */
  isPause?: boolean;
}

/** The gateway did not give a complete answer. The message can quote the gateway, shortened and without keys. */
export class GatewayError extends LoggableError {
  override readonly name = "GatewayError";
  readonly kind: GatewayErrorKind;
  readonly status: number | undefined;
  readonly reason: GatewayErrorReason | undefined;
  readonly type: string | undefined;
  readonly code: string | undefined;
  readonly param: string | undefined;
  readonly retryAfterMs: number | undefined;
  readonly isFormless: boolean;
  readonly isCut: boolean;
  readonly isPause: boolean;

  constructor(kind: GatewayErrorKind, message: string, options: GatewayErrorOptions = {}) {
    super(message, options);
    this.kind = kind;
    this.status = options.status;
    this.reason = options.reason;
    this.type = options.type;
    this.code = options.code;
    this.param = options.param;
    this.retryAfterMs = options.retryAfterMs;
    this.isFormless = options.isFormless === true;
    this.isCut = options.isCut === true;
    this.isPause = options.isPause === true;
  }
}

/** Failures that can pass: a later attempt with the same request may succeed. */
export const PASSING: ReadonlySet<GatewayErrorKind> = new Set([
  "unreachable",
  "rate-limited",
  "overloaded",
  "stalled",
  "interrupted",
]);

/** With these statuses a gateway says that it cannot do this at all, so Palaver asks another gateway. */
export const ELSEWHERE_STATUSES: ReadonlySet<number | undefined> = new Set([402, 501, 505]);

const UNSPENT: ReadonlySet<GatewayErrorKind> = new Set([
  "unreachable",
  "rate-limited",
  "overloaded",
  "unauthorized",
  "rejected",
]);

/** True if the failure proves that the gateway did not accept the request, so the request costs nothing. */
export function isUnspent(error: unknown): boolean {
  return error instanceof GatewayError && UNSPENT.has(error.kind);
}

/** True if the failure proves that the gateway never received the request. */
export function isUnsent(error: unknown): boolean {
  return error instanceof GatewayError && (error.isPause || (error.kind === "unreachable" && !error.isCut));
}

/** True if the failure proves that no image was created. A proxy's timeout (504) or a lost connection does not. */
export function isUndrawn(error: unknown): boolean {
  return error instanceof GatewayError && isUnspent(error) && error.status !== 504 && !error.isCut;
}
