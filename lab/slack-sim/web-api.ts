import { webApi } from "@slack/bolt";
import type { Slack } from "./control.ts";
import { textOf } from "./shown-text.ts";
import type { Json } from "./world.ts";

export interface RawAnswer {
  status: number;
  headers: Headers;
  body: Json;
}

/** Slack's official client, configured not to wait or retry. */
export function createWebClient(slack: Slack, token = slack.botToken): webApi.WebClient {
  return new webApi.WebClient(token, {
    slackApiUrl: slack.apiUrl,
    retryConfig: { retries: 0 },
    rejectRateLimitedCalls: true,
    logLevel: webApi.LogLevel.ERROR,
  });
}

/** Posts as the app and resolves to the message's timestamp. */
export async function postMessage(client: webApi.WebClient, args: Json): Promise<string> {
  const answer: Json = { ...(await client.apiCall("chat.postMessage", args)) };
  return textOf(answer["ts"]);
}

/** Makes one call and resolves to the response's body. */
export async function callApi(
  slack: Slack,
  method: string,
  args: Json = {},
  token = slack.botToken,
): Promise<RawAnswer> {
  const response = await fetch(`${slack.apiUrl}${method}`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
    body: JSON.stringify(args),
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, body: JSON.parse(text) as Json };
}

/** Resolves to the `error` of a call that Slack refuses, or to "ok". */
export async function errorOf(slack: Slack, method: string, args: Json = {}, token = slack.botToken): Promise<unknown> {
  const { body } = await callApi(slack, method, args, token);
  return body["ok"] === true ? "ok" : body["error"];
}
