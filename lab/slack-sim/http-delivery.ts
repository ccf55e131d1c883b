import { createHmac } from "node:crypto";
import type { AttemptResult, Delivery, Retry, Transport } from "./delivery.ts";

export interface HttpDeliveryOptions {
  url: string;
  signingSecret: string;
  ackMs: number;
}

export function createHttpDelivery({ url, signingSecret, ackMs }: HttpDeliveryOptions): Transport {
  async function send(delivery: Delivery, retry: Retry | undefined): Promise<AttemptResult> {
    const { body, contentType } = toRequest(delivery);
    const headers: Record<string, string> = {
      "content-type": contentType,
      "user-agent": "Slackbot 1.0 (+https://api.slack.com/robots)",
      ...signatureHeaders(signingSecret, body),
    };
    if (retry !== undefined) {
      headers["x-slack-retry-num"] = String(retry.num);
      headers["x-slack-retry-reason"] = retry.reason === "timeout" ? "http_timeout" : retry.reason;
    }
    const startedMs = performance.now();
    try {
      const response = await fetch(url, {
        method: "POST",
        headers,
        body,
        redirect: "manual",
        signal: AbortSignal.timeout(ackMs),
      });
      const text = await response.text();
      if (!response.ok) {
        const mayRetry = response.headers.get("x-slack-no-retry") !== "1";
        return { isAcknowledged: false, reason: "http_error", detail: `the answer was ${response.status}`, mayRetry };
      }
      return { isAcknowledged: true, response: readAnswer(text), takenMs: performance.now() - startedMs };
    } catch (error) {
      if (error instanceof Error && error.name === "TimeoutError") {
        return { isAcknowledged: false, reason: "timeout", detail: `no answer within ${ackMs} ms`, mayRetry: true };
      }
      return { isAcknowledged: false, reason: "connection_failed", detail: "the connection failed", mayRetry: true };
    }
  }

  return { send };
}

/** Returns a delivery's body and content type: JSON for events, a form for everything else. */
function toRequest({ type, payload }: Pick<Delivery, "type" | "payload">): {
  body: string;
  contentType: string;
} {
  if (type === "events_api") return { body: JSON.stringify(payload), contentType: "application/json" };
  const fields = type === "slash_commands" ? toFields(payload) : { payload: JSON.stringify(payload) };
  return { body: new URLSearchParams(fields).toString(), contentType: "application/x-www-form-urlencoded" };
}

/**
 * Returns headers that prove that a body is from Slack. They contain real time, because the receiver compares them with
 * its own clock.
 */
export function signatureHeaders(
  signingSecret: string,
  body: string,
  timestampS = Math.floor(Date.now() / 1000),
): Record<string, string> {
  const digest = createHmac("sha256", signingSecret).update(`v0:${timestampS}:${body}`).digest("hex");
  return { "x-slack-request-timestamp": String(timestampS), "x-slack-signature": `v0=${digest}` };
}

function toFields(payload: Record<string, unknown>): Record<string, string> {
  return Object.fromEntries(Object.entries(payload).map(([name, value]) => [name, String(value)]));
}

function readAnswer(text: string): unknown {
  if (text === "") return undefined;
  try {
    return JSON.parse(text);
  } catch {
    // An app can respond to a command with plain text, which Slack then shows.
    return { text };
  }
}
