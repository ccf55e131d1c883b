import type { Context } from "hono";
import type { Logger } from "pino";
import { bindingsOf } from "./bindings.ts";
import { isFromHere, nameSource } from "./client-address.ts";
import { createSecretGuard } from "./secret-guard.ts";

/** Knows which callers may see this process's state. */
export interface Insiders {
  /** Returns true for an insider, and the response for anyone else. */
  admit(context: Context): true | Response;
}

/** If a token is configured, insiders send it. Otherwise, all requests from this machine come from insiders. */
export function createInsiders(token: string | undefined, log: Logger): Insiders {
  const guard = token && createSecretGuard({ secret: token, name: "METRICS_TOKEN", log, now: () => performance.now() });
  return {
    admit(context) {
      const { incoming } = bindingsOf(context);
      if (!guard) {
        if (isFromHere(incoming)) return true;
        return context.json({ error: "Only requests from this machine are allowed until METRICS_TOKEN is set." }, 403);
      }
      const [, given] = /^Bearer +(\S+)$/i.exec(incoming.headers.authorization ?? "") ?? [];
      const verdict = given === undefined ? undefined : guard.judge(given, { address: nameSource(incoming) });
      if (verdict?.kind === "right") return true;
      if (verdict?.kind === "wait") {
        const headers = { "Retry-After": String(Math.ceil(verdict.waitMs / 1_000)) };
        return context.json({ error: "Too many wrong tokens from your address. Try again later." }, 429, headers);
      }
      const headers = { "WWW-Authenticate": 'Bearer realm="Palaver"' };
      return context.json({ error: "This needs METRICS_TOKEN, as Authorization: Bearer." }, 401, headers);
    },
  };
}
