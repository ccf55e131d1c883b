import { BlockList, isIPv6 } from "node:net";
import { type Context, Hono, type MiddlewareHandler } from "hono";
import { deleteCookie, getCookie, setCookie } from "hono/cookie";
import type { Logger } from "pino";
import { z } from "zod";
import type { AdminConfig } from "../config/config.ts";
import { bindingsOf } from "../http/bindings.ts";
import { limitBody } from "../http/body-limit.ts";
import { nameSource } from "../http/client-address.ts";
import { createSecretGuard } from "../http/secret-guard.ts";
import { truncate } from "../text/truncate.ts";
import type { Me } from "./page/wire.ts";
import { isCsrfToken, SESSION_SECONDS, type Sessions, toCsrfToken } from "./sessions.ts";

const COOKIE = "palaver-admin";
const MAX_PASSWORD_BYTES = 4_096;
const MAX_NAME_CHARS = 100;

/** A signed-in administrator, and the token that proves that the dashboard's page sent a change. */
interface SignedIn {
  name: string;
  csrfToken: string;
  /** Absent if a proxy signs the administrator in: the dashboard cannot end such a session. */
  token?: string;
}

export interface AdminAccessOptions {
  admin: AdminConfig;
  sessions: Sessions;
  /** Signs the token that the dashboard's page sends with every change. */
  csrfKey: string;
  /** True if browsers reach this service over TLS. */
  isSecure: boolean;
  log: Logger;
}

/** Admits administrators who have a session or whom a trusted proxy names. */
export interface AdminAccess {
  /** Serves `/session`: shows who is signed in, signs in and signs out. */
  routes: Hono;
  /** Responds with 401 if no one is signed in, and with 403 if a change lacks the page's token. */
  check: MiddlewareHandler;
  /** Returns the administrator's name. Call it only after `check`. */
  nameOf(c: Context): string;
  isSignedIn(c: Context): Promise<boolean>;
}

export function createAccess({ admin, sessions, csrfKey, isSecure, log }: AdminAccessOptions): AdminAccess {
  const { password, proxy } = admin;
  const guard =
    password && createSecretGuard({ secret: password, name: "ADMIN_PASSWORD", log, now: () => performance.now() });
  const proxies = toBlockList(proxy?.networks ?? []);
  const names = new WeakMap<Context, string>();

  async function authenticate(c: Context): Promise<SignedIn | undefined> {
    const named = proxy && readProxied(c, proxies, proxy.userHeader);
    if (named !== undefined) return { name: named, csrfToken: toCsrfToken(csrfKey, named) };
    const token = getCookie(c, COOKIE) ?? "";
    const name = password === undefined || token === "" ? undefined : await sessions.find(token);
    return name === undefined ? undefined : { name, token, csrfToken: toCsrfToken(csrfKey, token) };
  }

  async function signIn(c: Context): Promise<Response> {
    if (!guard) return c.json({ error: "There is no password: administrators sign in through the proxy." }, 404);
    const given = z.object({ password: z.string() }).safeParse(await c.req.json().catch(() => undefined)).data;
    if (given === undefined) return c.json({ error: "The request has no password." }, 400);
    const address = nameSource(bindingsOf(c).incoming);
    const verdict = guard.judge(given.password, { address });
    if (verdict.kind === "wait") {
      const seconds = Math.ceil(verdict.waitMs / 1_000);
      c.header("Retry-After", String(seconds));
      return c.json({ error: `Too many wrong passwords. Try again in ${seconds} s.` }, 429);
    }
    if (verdict.kind === "wrong") return c.json({ error: "Wrong password." }, 401);
    const name = `administrator at ${address}`;
    const token = await sessions.begin(name);
    log.info({ address }, "an administrator signed in");
    setCookie(c, COOKIE, token, {
      path: "/admin",
      httpOnly: true,
      sameSite: "Strict",
      secure: isSecure,
      maxAge: SESSION_SECONDS,
    });
    return c.json({ name, csrfToken: toCsrfToken(csrfKey, token), canSignOut: true, hasPassword: true } satisfies Me);
  }

  async function describeSession(c: Context): Promise<Response> {
    const signedIn = await authenticate(c);
    const hasPassword = password !== undefined;
    if (signedIn === undefined)
      return c.json({ name: null, csrfToken: "", canSignOut: false, hasPassword } satisfies Me);
    const { name, csrfToken, token } = signedIn;
    return c.json({ name, csrfToken, canSignOut: token !== undefined, hasPassword } satisfies Me);
  }

  const check: MiddlewareHandler = async (c, next) => {
    const signedIn = await authenticate(c);
    if (signedIn === undefined) return c.json({ error: "Sign in first." }, 401);
    const isChange = c.req.method !== "GET" && c.req.method !== "HEAD";
    if (isChange && !isCsrfToken(c.req.header("x-csrf-token"), signedIn.csrfToken)) {
      return c.json({ error: "The request was refused because it did not come from this page." }, 403);
    }
    names.set(c, signedIn.name);
    return next();
  };

  return {
    check,
    nameOf: (c) => names.get(c) ?? "an administrator",
    isSignedIn: async (c) => (await authenticate(c)) !== undefined,
    routes: new Hono()
      .get("/session", describeSession)
      .post("/session", limitBody({ maxBytes: MAX_PASSWORD_BYTES }), signIn)
      .delete("/session", check, async (c) => {
        await sessions.end(getCookie(c, COOKIE) ?? "");
        deleteCookie(c, COOKIE, { path: "/admin" });
        return c.json({});
      }),
  };
}

/**
 * Reads the administrator's name that a trusted proxy sends. Recognizes the proxy by the connection's address, never by
 * a header.
 */
function readProxied(c: Context, proxies: BlockList, header: string): string | undefined {
  const { socket, headers } = bindingsOf(c).incoming;
  const peer = (socket.remoteAddress ?? "").replace(/^::ffff:(?=\d+\.)/i, "");
  const isTrusted = peer !== "" && proxies.check(peer, isIPv6(peer) ? "ipv6" : "ipv4");
  const name = headers[header];
  // A comma means that the request had this header twice. The caller may have added one of these headers.
  if (!isTrusted || typeof name !== "string" || name.trim() === "" || name.includes(",")) return undefined;
  return truncate(name.trim().replace(/\p{Cc}/gu, ""), MAX_NAME_CHARS);
}

function toBlockList(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = "", length] = network.split("/");
    const family = isIPv6(address) ? "ipv6" : "ipv4";
    if (length === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(length), family);
  }
  return list;
}
