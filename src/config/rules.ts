import { isLoopback } from "./variables.ts";

/** The variables that are set, as they were given. */
export type GivenVariables = Readonly<Record<string, string>>;

/** Finds problems of variables that are each right by themselves: one sentence each, saying the way out. */
export function findConflicts(given: GivenVariables): string[] {
  return [gatewayConflicts, slackConflicts, shardConflicts, pageConflicts, adminConflicts, roleConflicts].flatMap(
    (find) => find(given),
  );
}

/** Discord's own: the application's id, which is digits, in base64; then two parts more. */
const DISCORD_TOKEN = /^[MNO][\w-]{22,27}\.[\w-]+\.[\w-]+$/;
/** Slack's own. */
const SIGNING_SECRET = /^[0-9a-f]{32}$/;

/**
 * Names of secrets that the platforms themselves never give out in such a form, each with what completes "VARIABLE …".
 * A stand-in for a platform, at an address of its own, may give out any form of secret.
 */
export function findOddForms(given: GivenVariables): Array<[name: string, message: string]> {
  const isOdd = (name: string, form: RegExp) => given[name] !== undefined && !form.test(given[name]);
  const odd: Array<[string, string]> = [];
  if (!given["SLACK_API_URL"] && isOdd("SLACK_SIGNING_SECRET", SIGNING_SECRET)) {
    const wanted = "the signing secret, 32 digits from 0 to 9 and a to f, found under Basic Information";
    odd.push(["SLACK_SIGNING_SECRET", `must be ${wanted}; the client secret is another one`]);
  }
  if (!given["DISCORD_API_URL"] && isOdd("DISCORD_TOKEN", DISCORD_TOKEN)) {
    const wanted = "the bot's token, three parts with dots between them";
    odd.push(["DISCORD_TOKEN", `must be ${wanted}, found in the Discord Developer Portal under Bot`]);
  }
  return odd;
}

/** The local page is served when it is asked for, and by default while no platform is configured. */
export function isPageOn(given: GivenVariables): boolean {
  const choice = given["LOCAL_CHAT"] ?? "auto";
  const platforms = ["SLACK_BOT_TOKEN", "SLACK_CLIENT_ID", "DISCORD_TOKEN"];
  return (
    choice === "on" || (choice === "auto" && given["CONSOLE_CHAT"] !== "on" && platforms.every((name) => !given[name]))
  );
}

function gatewayConflicts(given: GivenVariables): string[] {
  const problems: string[] = [];
  if (given["GATEWAY_BASE_URL"]) {
    if (!given["GATEWAY_API_KEY"])
      problems.push("GATEWAY_API_KEY is missing: GATEWAY_BASE_URL needs the key of its gateway.");
    if (!given["CHAT_MODEL"])
      problems.push("CHAT_MODEL is missing: name a model that the gateway at GATEWAY_BASE_URL lists under /v1/models.");
  } else if (given["GATEWAY_API_KEY"]) {
    problems.push(
      "GATEWAY_BASE_URL is missing: set the address GATEWAY_API_KEY belongs to, or take the key away to use the sandbox gateway.",
    );
  }
  return [...problems, ...fallbackConflicts(given)];
}

function fallbackConflicts(given: GivenVariables): string[] {
  const { GATEWAY_FALLBACK_BASE_URL: address, GATEWAY_FALLBACK_API_KEY: key, GATEWAY_BASE_URL: first } = given;
  const problems: string[] = [];
  if (!address !== !key) {
    const missing = address ? "GATEWAY_FALLBACK_API_KEY" : "GATEWAY_FALLBACK_BASE_URL";
    problems.push(`${missing} is missing: a second gateway needs its address and its own key.`);
  }
  if (address && !first) {
    problems.push("GATEWAY_BASE_URL is missing: GATEWAY_FALLBACK_BASE_URL stands in for the gateway named there.");
  }
  return problems;
}

/** Any of these means that the app is to be installed in several workspaces. */
const SLACK_OAUTH = ["SLACK_CLIENT_ID", "SLACK_CLIENT_SECRET", "SLACK_STATE_SECRET"];

function slackConflicts(given: GivenVariables): string[] {
  const ways = ["SLACK_APP_TOKEN", "SLACK_SIGNING_SECRET"].filter((name) => given[name]);
  const oauth = SLACK_OAUTH.filter((name) => given[name]);
  if (oauth.length > 0) return oauthConflicts(given, ways, oauth);
  if (given["SLACK_BOT_TOKEN"] && ways.length === 0) {
    return [
      "SLACK_BOT_TOKEN is not enough: set SLACK_APP_TOKEN as well for Socket Mode, or SLACK_SIGNING_SECRET for HTTP.",
    ];
  }
  if (!given["SLACK_BOT_TOKEN"] && ways.length > 0) {
    return [`SLACK_BOT_TOKEN is missing: ${ways.join(" and ")} cannot work without it.`];
  }
  return [];
}

function oauthConflicts(given: GivenVariables, ways: readonly string[], oauth: readonly string[]): string[] {
  if (given["SLACK_BOT_TOKEN"]) {
    return [`SLACK_BOT_TOKEN is for one workspace and ${oauth.join(", ")} for several: take one of the two away.`];
  }
  const problems: string[] = [];
  const missing = [...SLACK_OAUTH, "ENCRYPTION_KEY"].filter((name) => !given[name]);
  if (missing.length > 0) {
    const are = missing.length === 1 ? "is" : "are";
    problems.push(`${missing.join(" and ")} ${are} missing: installing in several workspaces needs all four together.`);
  }
  if (ways.length === 0) {
    problems.push("SLACK_APP_TOKEN is missing: set it for Socket Mode, or SLACK_SIGNING_SECRET for HTTP.");
  }
  if (!given["PUBLIC_URL"]) {
    problems.push("PUBLIC_URL is missing: Slack leads people who install the app back to an address of this service.");
  }
  return problems;
}

function shardConflicts(given: GivenVariables): string[] {
  const { SHARDS: shards, SHARD_COUNT: count } = given;
  if (!shards !== !count) {
    return [
      `${shards ? "SHARD_COUNT" : "SHARDS"} is missing: set both, or neither to let Discord decide how many there are.`,
    ];
  }
  const isTooHigh = (shards ?? "").split(",").some((id) => Number(id) >= Number(count));
  return shards && isTooHigh ? ["SHARDS must be below SHARD_COUNT: with 4 shards they are 0, 1, 2 and 3."] : [];
}

function pageConflicts(given: GivenVariables): string[] {
  const host = given["HOST"] ?? "127.0.0.1";
  if (isLoopback(host) || given["LOCAL_PASSWORD"] || !isPageOn(given)) return [];
  return [
    "HOST lets others reach the local page, which has no password: set LOCAL_PASSWORD, or keep the page to this machine with HOST=127.0.0.1 (LOCAL_CHAT=off switches it off).",
  ];
}

function adminConflicts(given: GivenVariables): string[] {
  const { ADMIN_TRUSTED_PROXY: proxy, ADMIN_USER_HEADER: header } = given;
  if (!proxy === !header) return [];
  return [
    proxy
      ? "ADMIN_USER_HEADER is missing: name the header in which the proxy at ADMIN_TRUSTED_PROXY says who asks."
      : "ADMIN_TRUSTED_PROXY is missing: ADMIN_USER_HEADER is believed of the proxies at these addresses alone.",
  ];
}

function roleConflicts(given: GivenVariables): string[] {
  const role = given["ROLE"] ?? "all";
  if (role === "all") return [];
  const problems: string[] = [];
  if (!given["REDIS_URL"]) {
    problems.push(`REDIS_URL is missing: ROLE=${role} shares its work with other processes on a Redis.`);
  }
  if (given["CONSOLE_CHAT"] === "on") {
    problems.push(`CONSOLE_CHAT does not go with ROLE=${role}: the terminal is answered by its own process, ROLE=all.`);
  } else if (isPageOn(given)) {
    problems.push(
      `ROLE=${role} has no local page, which its own process answers: set SLACK_BOT_TOKEN or DISCORD_TOKEN with LOCAL_CHAT=off, or ROLE=all.`,
    );
  }
  return problems;
}
