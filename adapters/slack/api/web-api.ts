import { fetch } from "undici";
import { ApiError, toNetworkError, toRefusal } from "./error.ts";
import { type Body, toBody } from "./wire.ts";

/** Slack's own base URL, unless `SLACK_API_URL` sets another one. */
export const API_URL = "https://slack.com/api/";

export interface Access {
  /** Ends in `/api/`. */
  apiUrl: string;
  /** Absent for a method that needs no token. */
  token?: string | undefined;
  /** Called with the scopes of the token, if Slack returns them. */
  onScopes?(scopes: readonly string[]): void;
}

/**
 * Calls a method of the Web API once. Rejects with an `ApiError` unless the call succeeds. Slack's own client is not
 * used: it copies every call and response for its log even if the log is off, and accepts no signal.
 */
export async function callMethod(
  { apiUrl, token, onScopes }: Access,
  method: string,
  args: Body,
  signal: AbortSignal,
): Promise<Body> {
  let status = 0;
  try {
    const response = await fetch(apiUrl + method, {
      method: "POST",
      headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
      body: toForm(args),
      redirect: "error",
      signal,
    });
    status = response.status;
    const scopes = response.headers.get("x-oauth-scopes");
    if (scopes !== null) onScopes?.(scopes.split(/\s*,\s*/));
    const answer = parse(await response.text());
    if (status === 200 && answer["ok"] === true) return answer;
    throw toRefusal(method, answer, { status, retryAfterS: response.headers.get("retry-after") });
  } catch (error) {
    throw error instanceof ApiError ? error : toNetworkError(method, error, status);
  }
}

/** All methods accept this format. Values that are not strings are JSON. */
function toForm(args: Body): URLSearchParams {
  const form = new URLSearchParams();
  for (const [name, value] of Object.entries(args)) {
    if (value === undefined || value === null) continue;
    form.append(name, typeof value === "string" ? value : JSON.stringify(value));
  }
  return form;
}

function parse(text: string): Body {
  try {
    return toBody(JSON.parse(text));
  } catch {
    return {};
  }
}
