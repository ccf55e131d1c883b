import { LoggableError, type LoggableErrorOptions } from "../port/errors.ts";

/**
 * `unreachable`: no connection, or the head of the answer never came. `rate-limited`: 429. `overloaded`: 5xx, or a 4xx
 * that passes (408, 409, 425). `unauthorized`: 401 or 403. `rejected`: any other 4xx, a 5xx that does not pass (501, 505),
 * an account without credit, or a request that broke the interface's rules and was not sent. `malformed`: the answer is
 * not what the interface promises (HTML, nothing, broken events). `stalled`: no data in time. `interrupted`: the answer
 * broke off, or the gateway reported an error inside it.
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

/** The cause of a refusal, if the gateway names one that people can do something about. */
export type GatewayErrorReason = "no-credit" | "unknown-model" | "too-long" | "filtered";

export interface GatewayErrorOptions extends LoggableErrorOptions {
  status?: number | undefined;
  reason?: GatewayErrorReason | undefined;
  /** `error.type`, `error.code` and `error.param` of the gateway's error object. */
  type?: string | undefined;
  code?: string | undefined;
  param?: string | undefined;
  /** The wait in milliseconds that the gateway asked for. */
  retryAfterMs?: number | undefined;
  /** The quoted words were not inside an error object: this address may not be a gateway. */
  isFormless?: boolean;
  /** The connection ended after the request was sent: it may have been carried out. */
  isCut?: boolean;
  /** Palaver made no call, because the model failed several times or asked for a pause. */
  isPause?: boolean;
}

/** The gateway gave no whole answer. The message may quote the gateway, shortened and without keys, never a whole body. */
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

/** Kinds of failures that pass: the same request may well be answered later. */
export const PASSING: ReadonlySet<GatewayErrorKind> = new Set([
  "unreachable",
  "rate-limited",
  "overloaded",
  "stalled",
  "interrupted",
]);

/** Gateways say with these that they cannot do what was asked; another one may. */
export const ELSEWHERE_STATUSES: ReadonlySet<number | undefined> = new Set([402, 501, 505]);

const UNSPENT: ReadonlySet<GatewayErrorKind> = new Set([
  "unreachable",
  "rate-limited",
  "overloaded",
  "unauthorized",
  "rejected",
]);

/** True if the failure says that the gateway did not accept the request: it costs nothing. */
export function isUnspent(error: unknown): boolean {
  return error instanceof GatewayError && UNSPENT.has(error.kind);
}

/**
 * True if the failure proves that no picture was made. A proxy that gave up (504) and a connection that ended meanwhile
 * prove nothing: the gateway may still have made it.
 */
export function isUndrawn(error: unknown): boolean {
  return error instanceof GatewayError && isUnspent(error) && error.status !== 504 && !error.isCut;
}
