import { LoggableError, type LoggableErrorOptions } from "../port/errors.ts";

/**
 * `unreachable`: no connection, or the answer's head never came. `rate-limited`: 429. `overloaded`: 5xx, or a 4xx
 * that passes (408, 409, 425). `unauthorized`: 401 or 403. `rejected`: any other 4xx, a 5xx that does not pass (501,
 * 505), or the request broke the interface's rules before it was sent. `malformed`: the answer is not what the interface promises (HTML, nothing,
 * broken events). `stalled`: no data in time. `interrupted`: the answer broke off, or the gateway reported an error
 * inside it.
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

export interface GatewayErrorOptions extends LoggableErrorOptions {
  status?: number;
  /** `error.type`, `error.code` and `error.param` of the gateway's error object. */
  type?: string;
  code?: string;
  param?: string;
  /** Milliseconds the gateway asked to wait, when it asked. */
  retryAfterMs?: number;
  /** The quoted words were not inside an error object: this address may not be a gateway. */
  isFormless?: true;
  /** The connection ended when the request was on its way: whether it was carried out is not known. */
  isCut?: boolean;
}

/** The gateway gave no whole answer. The message may quote it, shortened and without keys, never a body. */
export class GatewayError extends LoggableError {
  override readonly name = "GatewayError";
  readonly kind: GatewayErrorKind;
  readonly status: number | undefined;
  readonly type: string | undefined;
  readonly code: string | undefined;
  readonly param: string | undefined;
  readonly retryAfterMs: number | undefined;
  readonly isFormless: boolean;
  readonly isCut: boolean;

  constructor(kind: GatewayErrorKind, message: string, options: GatewayErrorOptions = {}) {
    super(message, options);
    this.kind = kind;
    this.status = options.status;
    this.type = options.type;
    this.code = options.code;
    this.param = options.param;
    this.retryAfterMs = options.retryAfterMs;
    this.isFormless = options.isFormless === true;
    this.isCut = options.isCut === true;
  }
}

const UNSPENT: ReadonlySet<GatewayErrorKind> = new Set([
  "unreachable",
  "rate-limited",
  "overloaded",
  "unauthorized",
  "rejected",
]);

/** True for a failure before anything of an answer came that says that the gateway did not take the request: it costs nothing. */
export function isUnspent(error: unknown): boolean {
  return error instanceof GatewayError && UNSPENT.has(error.kind);
}

/**
 * True for a failure after which a picture is certainly not there. Drawing takes long: a proxy that gave up (504) and a
 * connection that ended meanwhile leave that open.
 */
export function isUndrawn(error: unknown): boolean {
  return error instanceof GatewayError && isUnspent(error) && error.status !== 504 && !error.isCut;
}
