import type { Finding } from "../../src/port/finding.ts";
import { ApiError } from "./api/error.ts";
import { API_URL, callMethod } from "./api/web-api.ts";
import { type Body, readText } from "./api/wire.ts";
import { OPTIONAL_SCOPES, SCOPES } from "./install/scopes.ts";

const CALL_MS = 10_000;
const NO_STREAMING = new Set(["unknown_method", "http_404", "feature_not_enabled", "method_deprecated"]);
/** This channel and this code do not exist. If Slack's error says only that, everything else in the call is right. */
const NO_CHANNEL = { channel: "C0000000000", ts: "1000000000.000000", markdown_text: "." };
const NO_CODE = "0.0.0";
const USER_GROUP = /^S[A-Z0-9]+$/;
const UPDATE = "Paste manifest.json into the app's settings under App Manifest, then install the app again.";
/** Only a signed request could prove the secret. Its format was checked with the configuration. */
const UNPROVED_SECRET: Finding = {
  ok: true,
  what: "SLACK_SIGNING_SECRET has the right form; only a request from Slack can prove it.",
};

const FIXES: Readonly<Record<string, string>> = {
  invalid_auth: "Copy it again from the app's settings; it may belong to another app, or be incomplete.",
  not_authed: "Copy it again from the app's settings.",
  token_revoked: "Install the app again under OAuth & Permissions and copy the token.",
  token_expired: "Install the app again under OAuth & Permissions and copy the token.",
  account_inactive: "Install the app again under OAuth & Permissions and copy the token.",
  not_allowed_token_type: "It is another kind of token: copy the one that the variable's description names.",
  invalid_client_id: "Copy it again from Basic Information.",
  bad_client_secret: "Copy it again from Basic Information.",
  missing_scope: "Give the app-level token the scope connections:write, under Basic Information.",
};

export type SlackCheckOptions = {
  apiUrl: string | undefined;
} & (
  | { botToken: string; oauth: undefined }
  | { botToken: undefined; oauth: { clientId: string; clientSecret: string } }
) &
  ({ mode: "socket"; appToken: string } | { mode: "http"; signingSecret: string });

/** Checks everything that the adapter needs from Slack. Writes nothing. Never rejects: a problem is a finding. */
export async function checkSlack(
  options: SlackCheckOptions,
  signal: AbortSignal,
  namedGroups: readonly string[] = [],
): Promise<Finding[]> {
  const ask = createAsk(options.apiUrl, signal);
  const { botToken, oauth } = options;
  const access = botToken === undefined ? await checkClient(ask, oauth) : await checkBot(ask, botToken, namedGroups);
  const way = options.mode === "socket" ? await checkSocket(ask, options.appToken) : UNPROVED_SECRET;
  return [...access, way];
}

/** The response with the scopes of its token, or an error code with a sentence for people. */
type AskOutcome = { answer: Body; scopes: readonly string[] | undefined } | { error: string; words: string };
type Ask = (token: string | undefined, method: string, args?: Body) => Promise<AskOutcome>;

function createAsk(apiUrl = API_URL, signal: AbortSignal): Ask {
  return async (token, method, args = {}) => {
    const bounded = AbortSignal.any([signal, AbortSignal.timeout(CALL_MS)]);
    let scopes: readonly string[] | undefined;
    const onScopes = (given: readonly string[]) => void (scopes = given);
    try {
      return { answer: await callMethod({ apiUrl, token, onScopes }, method, args, bounded), scopes };
    } catch (error) {
      signal.throwIfAborted();
      return describe(error);
    }
  };
}

async function checkBot(ask: Ask, token: string, namedGroups: readonly string[]): Promise<Finding[]> {
  const outcome = await ask(token, "auth.test");
  if ("error" in outcome) return [refusal("SLACK_BOT_TOKEN", outcome)];
  const [user, team] = [readText(outcome.answer["user"]), readText(outcome.answer["team"])];
  const found: Finding = { ok: true, what: `The bot token belongs to ${user} in the workspace ${team}.` };
  const groups = namedGroups.filter((id) => USER_GROUP.test(id));
  const scopes = checkScopes(outcome.scopes);
  return [found, scopes, ...(await checkGroups(ask, token, groups)), await checkStreaming(ask, token)];
}

/** Finds the user groups whose members Slack does not list. Policy rules for these groups never match. */
async function checkGroups(ask: Ask, token: string, groups: readonly string[]): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const usergroup of groups) {
    const outcome = await ask(token, "usergroups.users.list", { usergroup });
    if (!("error" in outcome)) continue;
    const what = `Slack does not list the members of the user group ${usergroup}, which the policy names (${outcome.error}).`;
    const fix = outcome.error === "missing_scope" ? UPDATE : "Copy the group's id again, or remove it from the policy.";
    findings.push({ ok: false, what, fix });
  }
  return findings;
}

function checkScopes(granted: readonly string[] | undefined): Finding {
  if (granted === undefined) return { ok: true, what: "Slack does not say which scopes the bot token has." };
  const missing = Object.keys(SCOPES).filter((scope) => !granted.includes(scope));
  if (missing.length === 0) return { ok: true, what: "The bot token has all scopes of manifest.json." };
  const words = missing.map((scope) => `${scope} (${SCOPES[scope]})`).join(", ");
  if (missing.every((scope) => OPTIONAL_SCOPES.includes(scope))) {
    return { ok: true, what: `The bot token has all scopes that it needs. It works without ${words}.` };
  }
  return { ok: false, what: `The bot token lacks ${words}.`, fix: UPDATE };
}

/** Appends to a stream that does not exist. If the workspace has streaming, Slack's error says so. */
async function checkStreaming(ask: Ask, token: string): Promise<Finding> {
  const outcome = await ask(token, "chat.appendStream", NO_CHANNEL);
  const error = "error" in outcome ? outcome.error : "";
  if (NO_STREAMING.has(error)) {
    return {
      ok: true,
      what: "Streaming is not available in this workspace: the bot edits its answers instead, which is slower.",
    };
  }
  const isKnown = /^(channel_not_found|message_not_found|message_not_in_streaming_state)$/.test(error);
  return { ok: true, what: isKnown ? "Streaming is available." : "Slack does not say whether streaming is available." };
}

/** Exchanges a code that does not exist. Slack checks the client id and the secret before the code. */
async function checkClient(ask: Ask, { clientId, clientSecret }: { clientId: string; clientSecret: string }) {
  const args = { client_id: clientId, client_secret: clientSecret, code: NO_CODE };
  const outcome = await ask(undefined, "oauth.v2.access", args);
  if ("error" in outcome && /^invalid_code|^code_already_used/.test(outcome.error)) {
    return [
      { ok: true, what: "Slack accepts the client id and secret. It checks scopes when someone installs the app." },
    ];
  }
  if (!("error" in outcome)) return [{ ok: true, what: "Slack accepts the client id and secret." }];
  const name = outcome.error === "invalid_client_id" ? "SLACK_CLIENT_ID" : "SLACK_CLIENT_SECRET";
  return [refusal(name, outcome)];
}

/** Requests a socket's URL but opens no socket, because Slack would send it events that the check cannot handle. */
async function checkSocket(ask: Ask, appToken: string): Promise<Finding> {
  const outcome = await ask(appToken, "apps.connections.open");
  if ("error" in outcome) return refusal("SLACK_APP_TOKEN", outcome);
  return { ok: true, what: "The app-level token opens sockets (Socket Mode)." };
}

function refusal(variable: string, { error, words }: { error: string; words: string }): Finding {
  const fix = FIXES[error];
  return { ok: false, what: `${variable}: ${words}`, ...(fix !== undefined && { fix }) };
}

function describe(error: unknown): { error: string; words: string } {
  if (!(error instanceof ApiError)) throw error;
  const { code, status, retryAfterMs, network, message } = error;
  if (retryAfterMs !== undefined) {
    return { error: code, words: `Slack asks for a pause of ${Math.ceil(retryAfterMs / 1_000)} s. Try again later.` };
  }
  if (code !== "") return { error: code, words: `Slack refuses this value (${code}).` };
  if (network === undefined) return { error: `http_${status}`, words: message };
  const why = network === "TimeoutError" ? ` within ${CALL_MS / 1_000} s` : ` (${network})`;
  return { error: "unreachable", words: `Slack cannot be reached${why}.` };
}
