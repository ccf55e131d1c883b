import { isLoopback } from "./variables.ts";

/** The variables that are set, as they were given. */
export type GivenVariables = Readonly<Record<string, string>>;

/** What is wrong with variables that are each right by themselves: one sentence per problem, saying the way out. */
export function findConflicts(given: GivenVariables): string[] {
  return [...gatewayConflicts(given), ...slackConflicts(given), ...pageConflicts(given), ...roleConflicts(given)];
}

/** Whether the local page is to be served: asked for, or left open while no platform is configured. */
export function isPageOn(given: GivenVariables): boolean {
  const choice = given["LOCAL_CHAT"] ?? "auto";
  return choice === "on" || (choice === "auto" && !given["SLACK_BOT_TOKEN"] && !given["DISCORD_TOKEN"]);
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
  return problems;
}

function slackConflicts(given: GivenVariables): string[] {
  const ways = ["SLACK_APP_TOKEN", "SLACK_SIGNING_SECRET"].filter((name) => given[name]);
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

function pageConflicts(given: GivenVariables): string[] {
  const host = given["HOST"] ?? "127.0.0.1";
  if (isLoopback(host) || given["LOCAL_PASSWORD"] || !isPageOn(given)) return [];
  return [
    "HOST lets others reach the local page, which has no password: set LOCAL_PASSWORD, or keep the page to this machine with HOST=127.0.0.1 (LOCAL_CHAT=off switches it off).",
  ];
}

function roleConflicts(given: GivenVariables): string[] {
  const role = given["ROLE"] ?? "all";
  if (role === "all") return [];
  return ["ROLE must be all: this version does not share its work between processes yet."];
}
