import { WebAPIHTTPError, WebAPIPlatformError, WebAPIRateLimitedError } from "@slack/web-api";
import { SlackApiError } from "./error.ts";

/** What the HTTP answer said besides its body. */
export interface Heard {
  status: number;
  retryAfterS: number | undefined;
}

/** Asked for where Slack refuses for the rate and names no time. */
const UNTOLD_WAIT_MS = 10_000;
const RATE_CODES = new Set(["ratelimited", "rate_limited"]);
/** Slack's words are short names; anything else is a page of something in between. */
const CODE = /^[\w.:-]{1,80}$/;

/** What a failure of Slack's client means, in words that carry nothing of what was sent. */
export function toApiError(method: string, error: unknown, { status, retryAfterS }: Heard): SlackApiError {
  const told = retryAfterS === undefined ? undefined : retryAfterS * 1_000;
  if (error instanceof WebAPIRateLimitedError || status === 429) {
    const seconds = error instanceof WebAPIRateLimitedError ? error.retryAfter * 1_000 : told;
    return toRateLimit(method, seconds, status);
  }
  if (error instanceof WebAPIPlatformError) return toRefusal(method, error, status, told);
  if (error instanceof WebAPIHTTPError) {
    const { statusCode } = error;
    return new SlackApiError(method, `Slack answered ${method} with ${statusCode}.`, { code: "", status: statusCode });
  }
  // What the network says names hosts and ports at most, but errors of the client may carry what was sent.
  const words = readNetworkCode(error) ?? (error instanceof Error ? error.name : "unknown");
  return new SlackApiError(method, `Slack did not answer ${method} (${words}).`, { code: "", status });
}

/** The message that a call made. Without it nobody knows whether there is one, whatever the answer says. */
export function readTs(method: string, { ts }: Readonly<Record<string, unknown>>): string {
  if (typeof ts === "string" && ts !== "") return ts;
  throw new SlackApiError(method, `Slack did not say which message ${method} made.`, { code: "", status: 200 });
}

function toRefusal(
  method: string,
  { data }: WebAPIPlatformError,
  status: number,
  toldMs: number | undefined,
): SlackApiError {
  const { error: word } = data as { error?: unknown };
  const code = typeof word === "string" && CODE.test(word) ? word : "";
  if (code === "") {
    return new SlackApiError(method, `What came for ${method} is no answer of Slack's.`, { code, status });
  }
  if (RATE_CODES.has(code)) return toRateLimit(method, toldMs, status);
  const { needed } = data as { needed?: unknown };
  const scope = typeof needed === "string" ? needed : undefined;
  const { messages = [] } = data.response_metadata ?? {};
  const need = scope === undefined ? "" : ` It needs ${scope}.`;
  return new SlackApiError(method, `Slack refused ${method}: ${code}.${need}`, {
    code,
    // It may repeat what was sent.
    quote: messages
      .map((words) => ` ${words}`)
      .join("")
      .slice(0, 300),
    status,
    ...(scope !== undefined && { needed: scope }),
  });
}

/** A refusal for the rate; `status` is that of the answer, 0 where Slack was not asked. */
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
