import { LoggableError, type LoggableErrorOptions, nameNetworkError } from "../../../src/port/errors.ts";
import { truncate } from "../../../src/text/truncate.ts";
import { type Body, readText, toBody } from "./wire.ts";

const DEFAULT_WAIT_MS = 10_000;
const RATE_CODES = new Set(["ratelimited", "rate_limited"]);
/** Slack's error codes are short names. Anything else comes from a proxy. */
const CODE = /^[\w.:-]{1,80}$/;

/** Codes of errors that do not go away by waiting. */
const HOPELESS = new Set([
  "not_authed",
  "invalid_auth",
  "account_inactive",
  "token_revoked",
  "token_expired",
  "user_removed_from_team",
  "team_disabled",
  "not_allowed_token_type",
  "missing_scope",
  "no_permission",
]);

const REMEDIES = {
  bot: "Copy the Bot User OAuth Token from the app's settings (OAuth & Permissions) to SLACK_BOT_TOKEN, and restart.",
  app: "Create an app-level token with the scope connections:write in the app's settings (Basic Information), copy it to SLACK_APP_TOKEN, and restart.",
};

export interface ApiErrorOptions extends LoggableErrorOptions {
  /** Slack's error code, for example `not_in_channel`; "" if Slack gave none. */
  code: string;
  /** The HTTP status of the response; 0 if there was no response. */
  status: number;
  /** The wait that Slack asks for. Set only for a rate limit. */
  retryAfterMs?: number;
  needed?: string;
  /** The network's error code if no complete response arrived, for example `ECONNREFUSED`. */
  network?: string;
}

/**
 * Slack refused a call or did not respond properly. The message contains the method and Slack's code, but never the
 * arguments, which contain people's words.
 */
export class ApiError extends LoggableError {
  override readonly name = "ApiError";
  readonly method: string;
  readonly status: number;
  readonly retryAfterMs: number | undefined;
  readonly needed: string | undefined;
  readonly network: string | undefined;
  /** Has the same shape as in the errors of Slack's own client. */
  readonly data: { readonly error: string };

  constructor(method: string, message: string, options: ApiErrorOptions) {
    super(message, options);
    this.method = method;
    this.status = options.status;
    this.retryAfterMs = options.retryAfterMs;
    this.needed = options.needed;
    this.network = options.network;
    this.data = { error: options.code };
  }

  get code(): string {
    return this.data.error;
  }
}

/** After one of these error codes, Slack may have executed the call. Only an idempotent call can be retried. */
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

/** Slack's error code, from this adapter's errors or from those of Slack's client; "" for any other error. */
export function codeOf(error: unknown): string {
  const { data } = (error ?? {}) as { data?: { error?: unknown } };
  return typeof data?.error === "string" ? data.error : "";
}

/** True if Slack may have executed the failed call. */
export function isUncertain(error: unknown): boolean {
  if (!(error instanceof ApiError)) return true;
  return error.retryAfterMs === undefined && UNCERTAIN_CODES.has(error.code) && error.status !== 404;
}

export interface ResponseInfo {
  status: number;
  retryAfterS: string | null;
}

const MAX_QUOTE_CHARS = 300;

/** The error quotes nothing from the request. */
export function toRefusal(method: string, answer: Body, { status, retryAfterS }: ResponseInfo): ApiError {
  const statedMs = Number.parseFloat(retryAfterS ?? "") * 1_000;
  const waitMs = Number.isNaN(statedMs) ? DEFAULT_WAIT_MS : statedMs;
  if (status === 429) return toRateLimit(method, waitMs, status);
  if (status !== 200) {
    return new ApiError(method, `Slack answered ${method} with ${status}.`, { code: "", status });
  }
  const code = readText(answer["error"]) ?? "";
  if (!CODE.test(code)) {
    return new ApiError(method, `The response to ${method} doesn't look like Slack's.`, { code: "", status });
  }
  if (RATE_CODES.has(code)) return toRateLimit(method, waitMs, status);
  const needed = readText(answer["needed"]);
  const { messages } = toBody(answer["response_metadata"]);
  const need = needed === undefined ? "" : ` It needs ${needed}.`;
  return new ApiError(method, `Slack refused ${method}: ${code}.${need}`, {
    code,
    // Slack's explanation can quote people's words.
    quote: truncate((Array.isArray(messages) ? messages : []).map((words) => ` ${words}`).join(""), MAX_QUOTE_CHARS),
    status,
    ...(needed !== undefined && { needed }),
  });
}

/** `status`: the HTTP status if only the start of a response arrived, or 0 if nothing did. */
export function toNetworkError(method: string, error: unknown, status = 0): ApiError {
  const network = nameNetworkError(error);
  return new ApiError(method, `Slack did not answer ${method} (${network}).`, { code: "", status, network });
}

/** Throws if the `ts` is missing, because it is then unknown whether the message exists. */
export function readTs(method: string, { ts }: Readonly<Record<string, unknown>>): string {
  if (typeof ts === "string" && ts !== "") return ts;
  throw new ApiError(method, `Slack did not return the ts of the message that ${method} created.`, {
    code: "",
    status: 200,
  });
}

/** `status` is the HTTP status of the response, or 0 if no request was sent. */
export function toRateLimit(method: string, waitMs = DEFAULT_WAIT_MS, status = 0): ApiError {
  const message = `Slack asks ${method} to wait ${Math.ceil(waitMs / 1_000)} s.`;
  return new ApiError(method, message, { code: "ratelimited", status, retryAfterMs: waitMs });
}

/** True if Slack will never accept this token again. */
export function isHopeless(error: unknown): boolean {
  return HOPELESS.has(codeOf(error));
}

export function describeAuthError(error: unknown, token: keyof typeof REMEDIES): string {
  const name = token === "bot" ? "bot token" : "app-level token";
  return `Slack does not accept the ${name} (${codeOf(error) || "refused"}). ${REMEDIES[token]}`;
}

/** Slack's error codes if the workspace has no agents, or if the app is not an agent there. */
const NO_AGENT = new Set([
  "not_agent_app",
  "not_allowed_token_type",
  "missing_scope",
  "unknown_method",
  "feature_not_enabled",
  "method_deprecated",
  "channel_type_not_supported",
]);

/** True if the workspace lacks the features for agents, for example suggestions and titles. */
export function isNoAgent(error: unknown): boolean {
  return NO_AGENT.has(codeOf(error));
}
