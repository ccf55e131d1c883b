import { request } from "undici";
import { createSlackHosts } from "../api/hosts.ts";
import type { Body } from "../api/wire.ts";

const RESPONSE_MS = 5_000;

/** Answers an interaction so that only the person sees it, without a token and also where the bot is no member. */
export type Respond = (responseUrl: string | undefined, body: Body) => Promise<void>;

/** Rejects when Slack does not take the answer, and for an address that is not Slack's. */
export function createRespond(apiUrl: string | undefined): Respond {
  const hosts = createSlackHosts(apiUrl);

  return async (responseUrl, body) => {
    if (responseUrl === undefined) return;
    if (!hosts.isHook(responseUrl)) {
      throw new TypeError("The address given for an answer to an interaction is not one of Slack's.");
    }
    const answer = await request(responseUrl, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(RESPONSE_MS),
    });
    await answer.body.dump();
    if (answer.statusCode !== 200) {
      throw new Error(`Slack did not take an answer to an interaction: status ${answer.statusCode}.`);
    }
  };
}

/** What only the person sees, as an answer to a command or a shortcut. */
export function toEphemeral(text: string): Body {
  return { response_type: "ephemeral", replace_original: false, text };
}
