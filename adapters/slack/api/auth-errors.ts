/** Refusals that no waiting mends. */
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

/** Slack's own word for why it refused a call; "" where it gave none. */
export function refusalOf(error: unknown): string {
  const { data } = (error ?? {}) as { data?: { error?: unknown } };
  return typeof data?.error === "string" ? data.error : "";
}

/** Whether Slack will never take this token again. */
export function isHopeless(error: unknown): boolean {
  return HOPELESS.has(refusalOf(error));
}

/** What to tell whoever runs the service about a token that Slack refuses. */
export function describeAuthError(error: unknown, token: keyof typeof REMEDIES): string {
  const name = token === "bot" ? "bot token" : "app-level token";
  return `Slack does not accept the ${name} (${refusalOf(error) || "refused"}). ${REMEDIES[token]}`;
}
