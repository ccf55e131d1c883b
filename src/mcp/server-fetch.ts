import type { FetchLike } from "@modelcontextprotocol/client";
import type { McpTransport } from "../config/mcp-servers.ts";
import { LoggableError } from "../port/errors.ts";
import { boundedFetch } from "./bounded-fetch.ts";

/**
 * `fetch` for one server and its authorization. Sends the configured headers to the server's own origin alone, and reads
 * nothing from an origin that is not configured, whatever a server or its metadata names.
 */
export function createServerFetch({ url, headers, oauth }: Exclude<McpTransport, { type: "stdio" }>): FetchLike {
  const own = new URL(url);
  return async (address, init) => {
    const to = new URL(address);
    const isOwn = isSameOrigin(own, to);
    const isRead = (init?.method ?? "GET").toUpperCase() === "GET";
    const isConfigured = isOwn || (oauth !== undefined && isSameOrigin(new URL(oauth.issuer), to));
    if (isRead && !isConfigured) {
      throw new LoggableError("an origin that is not configured is not asked", { quote: `: ${to.origin}` });
    }
    const sent = new Headers(init?.headers);
    for (const [name, value] of Object.entries(isOwn ? headers : {})) if (!sent.has(name)) sent.set(name, value);
    // The SDK follows redirects within an origin itself.
    return boundedFetch(to, { ...init, headers: sent, redirect: "manual" });
  };
}

/** An address without encryption may lead to the same one with it. */
function isSameOrigin(known: URL, to: URL): boolean {
  if (known.origin === to.origin) return true;
  return known.hostname === to.hostname && to.protocol === "https:" && known.port === "" && to.port === "";
}
