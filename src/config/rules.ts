import type { GivenVariables } from "../port/variables.ts";

/** Finds conflicts between variables that are each valid. Returns a sentence with the fix for each conflict. */
export function findConflicts(given: GivenVariables): string[] {
  return [gatewayConflicts, adminConflicts, roleConflicts].flatMap((find) => find(given));
}

function gatewayConflicts(given: GivenVariables): string[] {
  const problems: string[] = [];
  if (given["GATEWAY_BASE_URL"]) {
    if (!given["GATEWAY_API_KEY"])
      problems.push("GATEWAY_API_KEY is missing: GATEWAY_BASE_URL needs the key of its gateway.");
    if (!given["CHAT_MODEL"])
      problems.push(
        "CHAT_MODEL is missing: set it to a model that the gateway at GATEWAY_BASE_URL lists under /v1/models.",
      );
  } else if (given["GATEWAY_API_KEY"]) {
    problems.push(
      "GATEWAY_BASE_URL is missing: set the address that GATEWAY_API_KEY belongs to, or remove the key to use the sandbox gateway.",
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
    problems.push("GATEWAY_BASE_URL is missing: GATEWAY_FALLBACK_BASE_URL replaces that gateway while it is down.");
  }
  return problems;
}

function adminConflicts(given: GivenVariables): string[] {
  const { ADMIN_TRUSTED_PROXY: proxy, ADMIN_USER_HEADER: header } = given;
  if (!proxy === !header) return [];
  return [
    proxy
      ? "ADMIN_USER_HEADER is missing: set it to the header in which the proxy at ADMIN_TRUSTED_PROXY names the administrator."
      : "ADMIN_TRUSTED_PROXY is missing: Palaver trusts ADMIN_USER_HEADER only from proxies at these addresses.",
  ];
}

function roleConflicts(given: GivenVariables): string[] {
  const role = given["ROLE"] ?? "all";
  if (role === "all") return [];
  if (given["REDIS_URL"]) return [];
  return [`REDIS_URL is missing: ROLE=${role} shares its work with other processes through Redis.`];
}
