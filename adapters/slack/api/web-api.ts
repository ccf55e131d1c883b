import { fetch } from "undici";
import { SlackApiError, toNetworkError, toRefusal } from "./error.ts";
import { type Body, toBody } from "./wire.ts";

/** Slack's own; `SLACK_API_URL` names another. */
export const API_URL = "https://slack.com/api/";

export interface Access {
  /** Ends in `/api/`. */
  apiUrl: string;
  /** Absent for a method that is called to get one. */
  token?: string | undefined;
  /** Told the scopes of the token, where Slack names them. */
  onScopes?(scopes: readonly string[]): void;
}

/**
 * Calls a method of the Web API, once. Rejects with a `SlackApiError` for any answer but success. Slack's own client
 * copies every call and answer for its log, whether that is kept or not, and takes no signal.
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
    throw error instanceof SlackApiError ? error : toNetworkError(method, error, status);
  }
}

/** The one form that all methods take: what is no text is JSON. */
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
