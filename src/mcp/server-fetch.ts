import type { FetchLike } from "@modelcontextprotocol/client";
import type { McpTransport } from "../config/mcp-servers.ts";
import { LoggableError } from "../port/errors.ts";
import { boundedFetch } from "./bounded-fetch.ts";

/**
 * Creates a `fetch` for one server and its authorization server. It sends the configured headers only to the server's
 * own origin. It refuses origins that are not configured, even if the server or its metadata names them.
 */
export function createServerFetch({ url, headers, oauth }: Exclude<McpTransport, { type: "stdio" }>): FetchLike {
  const own = new URL(url);
  return async (address, init) => {
    const to = new URL(address);
    const isOwn = isSameOrigin(own, to);
    const isRead = (init?.method ?? "GET").toUpperCase() === "GET";
    const isConfigured = isOwn || (oauth !== undefined && isSameOrigin(new URL(oauth.issuer), to));
    if (isRead && !isConfigured) {
      throw new LoggableError("refused to contact an origin that is not configured", { quote: `: ${to.origin}` });
    }
    const sent = new Headers(init?.headers);
    for (const [name, value] of Object.entries(isOwn ? headers : {})) if (!sent.has(name)) sent.set(name, value);
    // Leave redirects to the SDK, which follows them within an origin.
    return boundedFetch(to, { ...init, headers: sent, redirect: "manual" });
  };
}

/** An http address can redirect to https on the same host. */
function isSameOrigin(known: URL, to: URL): boolean {
  if (known.origin === to.origin) return true;
  return known.hostname === to.hostname && to.protocol === "https:" && known.port === "" && to.port === "";
}
