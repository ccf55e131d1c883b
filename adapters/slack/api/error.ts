import { LoggableError, type LoggableErrorOptions } from "../../../src/port/errors.ts";
import { truncate } from "../../../src/text/truncate.ts";
import { type Body, readText, toBody } from "./wire.ts";

/** The wait after a rate limit for which Slack names no time. */
const UNTOLD_WAIT_MS = 10_000;
const RATE_CODES = new Set(["ratelimited", "rate_limited"]);
/** Slack's error codes are short names; anything else comes from a proxy in between. */
const CODE = /^[\w.:-]{1,80}$/;

/** Error codes that waiting does not cure. */
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
  bot: "Copy the Bot User OAuth Token from the app's settings, under OAuth & Permissions, to SLACK_BOT_TOKEN, and start again.",
  app: "Make an app-level token with the scope connections:write in the app's settings, under Basic Information, put it into SLACK_APP_TOKEN, and start again.",
};

export interface SlackApiErrorOptions extends LoggableErrorOptions {
  /** Slack's own word for it, such as `not_in_channel`; "" where it gave none. */
  code: string;
  /** The status of the HTTP answer; 0 where there was none. */
  status: number;
  /** The wait that Slack asks for; only with a rate limit. */
  retryAfterMs?: number;
  /** The scope that was missing. */
  needed?: string;
  /** The network's word for why no whole answer came, such as `ECONNREFUSED`. */
  network?: string;
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
  readonly network: string | undefined;
  /** As the errors of Slack's own client have it. */
  readonly data: { readonly error: string };

  constructor(method: string, message: string, options: SlackApiErrorOptions) {
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

/** Error codes after which the call may or may not have been carried out: only an idempotent call may follow. */
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

/** Slack's error code, of our own errors and of those of Slack's client alike; "" where there is none. */
export function codeOf(error: unknown): string {
  const { data } = (error ?? {}) as { data?: { error?: unknown } };
  return typeof data?.error === "string" ? data.error : "";
}

/** True when nobody knows whether the call was carried out. */
export function isUncertain(error: unknown): boolean {
  if (!(error instanceof SlackApiError)) return true;
  return error.retryAfterMs === undefined && UNCERTAIN_CODES.has(error.code) && error.status !== 404;
}

/** The HTTP answer without its body. */
export interface ResponseInfo {
  status: number;
  /** As the header says it. */
  retryAfterS: string | null;
}

/** Longest quotation of Slack's explanation. */
const MAX_QUOTE_CHARS = 300;

/** Converts an answer that is no success; the message quotes nothing that was sent. */
export function toRefusal(method: string, answer: Body, { status, retryAfterS }: ResponseInfo): SlackApiError {
  const toldMs = Number.parseFloat(retryAfterS ?? "") * 1_000;
  const waitMs = Number.isNaN(toldMs) ? UNTOLD_WAIT_MS : toldMs;
  if (status === 429) return toRateLimit(method, waitMs, status);
  if (status !== 200) {
    return new SlackApiError(method, `Slack answered ${method} with ${status}.`, { code: "", status });
  }
  const code = readText(answer["error"]) ?? "";
  if (!CODE.test(code)) {
    return new SlackApiError(method, `What came for ${method} is no answer of Slack's.`, { code: "", status });
  }
  if (RATE_CODES.has(code)) return toRateLimit(method, waitMs, status);
  const needed = readText(answer["needed"]);
  const { messages } = toBody(answer["response_metadata"]);
  const need = needed === undefined ? "" : ` It needs ${needed}.`;
  return new SlackApiError(method, `Slack refused ${method}: ${code}.${need}`, {
    code,
    // It may quote people's words.
    quote: truncate((Array.isArray(messages) ? messages : []).map((words) => ` ${words}`).join(""), MAX_QUOTE_CHARS),
    status,
    ...(needed !== undefined && { needed }),
  });
}

/** Converts whatever kept an answer from coming whole; `status` is that of its head, 0 where none came. */
export function toNetworkError(method: string, error: unknown, status = 0): SlackApiError {
  // Network errors name hosts and ports at most; others may quote people's words.
  const network = readNetworkCode(error) ?? (error instanceof Error ? error.name : "unknown");
  return new SlackApiError(method, `Slack did not answer ${method} (${network}).`, { code: "", status, network });
}

/** The `ts` of the message that a call made. Throws without one: then the message may or may not exist. */
export function readTs(method: string, { ts }: Readonly<Record<string, unknown>>): string {
  if (typeof ts === "string" && ts !== "") return ts;
  throw new SlackApiError(method, `Slack did not say which message ${method} made.`, { code: "", status: 200 });
}

/** A rate limit. `status` is that of the HTTP answer, 0 where Slack was not asked. */
export function toRateLimit(method: string, waitMs = UNTOLD_WAIT_MS, status = 0): SlackApiError {
  const message = `Slack wants ${method} to wait ${Math.ceil(waitMs / 1_000)} s.`;
  return new SlackApiError(method, message, { code: "ratelimited", status, retryAfterMs: waitMs });
}

function readNetworkCode(error: unknown): string | undefined {
  for (let at = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth += 1) {
    const code = "code" in at ? at.code : undefined;
    if (typeof code === "string" && /^[A-Z][A-Z_0-9]{3,40}$/.test(code)) return code;
  }
  return undefined;
}

/** True when Slack will never accept this token again. */
export function isHopeless(error: unknown): boolean {
  return HOPELESS.has(codeOf(error));
}

/** Describes a refused token, with the remedy, to the people who run the service. */
export function describeAuthError(error: unknown, token: keyof typeof REMEDIES): string {
  const name = token === "bot" ? "bot token" : "app-level token";
  return `Slack does not accept the ${name} (${codeOf(error) || "refused"}). ${REMEDIES[token]}`;
}

/** The app is no agent in this workspace, or the workspace has no agents. */
const NO_AGENT = new Set([
  "not_agent_app",
  "not_allowed_token_type",
  "missing_scope",
  "unknown_method",
  "feature_not_enabled",
  "method_deprecated",
  "channel_type_not_supported",
]);

/** True where the workspace shows no suggestions, titles and the like, which belong to agents. */
export function isNoAgent(error: unknown): boolean {
  return NO_AGENT.has(codeOf(error));
}
