import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { Context, MiddlewareHandler } from "hono";
import { getCookie, setCookie } from "hono/cookie";
import { auth } from "hono/utils/basic-auth";
import type { Logger } from "pino";
import { bindingsOf } from "./bindings.ts";
import { nameSource } from "./client-address.ts";
import { createSecretGuard } from "./secret-guard.ts";

const COOKIE = "palaver-browser";
const COOKIE_DAYS = 180;
const PURPOSE = "palaver browser v1";

export interface PasswordOptions {
  password: string;
  /** The key that signs the cookies of known browsers. */
  browserKey: string;
  /** The message to a person whose password is missing or wrong. */
  hint: string;
  /** The password's name in the log. */
  name: string;
  log: Logger;
}

/**
 * HTTP Basic authentication with any user name. Failed attempts slow down further attempts from the same source. A
 * cookie marks a known browser, which does not wait because of others at its address.
 */
export function requirePassword({ password, browserKey, hint, name, log }: PasswordOptions): MiddlewareHandler {
  const guard = createSecretGuard({ secret: password, name, log, now: () => performance.now() });
  const browsers = createBrowsers(browserKey, password);

  return async (context, next) => {
    const given = auth(context.req.raw);
    if (given === undefined) return refuse(context, hint);
    const browser = browsers.read(context);
    const verdict = guard.judge(given.password, { address: nameSource(bindingsOf(context).incoming), browser });
    if (verdict.kind === "wrong") return refuse(context, hint);
    if (verdict.kind === "wait") {
      const seconds = Math.ceil(verdict.waitMs / 1_000);
      context.header("Retry-After", String(seconds));
      return context.json({ error: `Too many wrong passwords. Try again in ${seconds} s.` }, 429);
    }
    if (browser === undefined) browsers.remember(context);
    return next();
  };
}

function refuse(context: Context, hint: string): Response {
  context.header("WWW-Authenticate", 'Basic realm="Palaver"');
  return context.json({ error: hint }, 401);
}

/** A new password or key makes earlier cookies invalid. */
function createBrowsers(browserKey: string, password: string) {
  const key = createHmac("sha256", browserKey).update(`${PURPOSE}\n${password}`).digest();
  const sign = (text: string) => createHmac("sha256", key).update(text).digest();

  return {
    read(context: Context): string | undefined {
      const [, text = "", id, expiresAt, signature = ""] =
        /^(([\w-]{22})\.(\d{1,12}))\.([\w-]{43})$/.exec(getCookie(context, COOKIE) ?? "") ?? [];
      const isSigned = timingSafeEqual(sign(text), toMac(signature));
      return isSigned && Number(expiresAt) > Date.now() / 1_000 ? id : undefined;
    },
    remember(context: Context): void {
      const maxAge = COOKIE_DAYS * 86_400;
      const text = `${randomBytes(16).toString("base64url")}.${Math.ceil(Date.now() / 1_000 + maxAge)}`;
      const value = `${text}.${sign(text).toString("base64url")}`;
      setCookie(context, COOKIE, value, { path: "/", httpOnly: true, sameSite: "Strict", maxAge });
    },
  };
}

function toMac(signature: string): Uint8Array {
  const bytes = Buffer.from(signature, "base64url");
  return bytes.byteLength === 32 ? bytes : Buffer.alloc(32);
}
