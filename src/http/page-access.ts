import type { Context, MiddlewareHandler } from "hono";
import { isLoopbackHost } from "./client-address.ts";

/** Accepts only requests for this machine or an allowed host, to prevent DNS rebinding. */
export function checkHost(allowedHosts: readonly string[]): MiddlewareHandler {
  const allowed = new Set(allowedHosts.map((host) => host.toLowerCase()));
  return async (c, next) => {
    const host = (c.req.header("host") ?? "").toLowerCase();
    const name = toHostname(host);
    if (!isLoopbackHost(host) && !allowed.has(host) && !allowed.has(name)) {
      const shown = JSON.stringify(host.slice(0, 100));
      const error = `This page is not served under the name ${shown}: open it as localhost, or set PUBLIC_URL to the address you use.`;
      return c.json({ error }, 403);
    }
    return next();
  };
}

/** Refuses a change unless the page itself requests it. */
export const checkOrigin: MiddlewareHandler = async (c, next) => {
  if (c.req.method !== "GET" && c.req.method !== "HEAD" && !isSameOrigin(c)) {
    return c.json({ error: "This request did not come from the page itself, so it was refused." }, 403);
  }
  return next();
};

export const hardenHeaders: MiddlewareHandler = async (c, next) => {
  await next();
  c.header("X-Content-Type-Options", "nosniff");
  c.header("Referrer-Policy", "no-referrer");
  c.header("Cross-Origin-Resource-Policy", "same-origin");
  c.header("Cross-Origin-Opener-Policy", "same-origin");
};

function isSameOrigin(c: Context): boolean {
  const origin = c.req.header("origin");
  if (origin === undefined || !URL.canParse(origin)) return false;
  return new URL(origin).host === (c.req.header("host") ?? "").toLowerCase();
}

function toHostname(host: string): string {
  return host.startsWith("[") ? host.slice(0, host.indexOf("]") + 1) : (host.split(":")[0] ?? "");
}
