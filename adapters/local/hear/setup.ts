import { type Context, Hono } from "hono";
import type { Logger } from "pino";
import { z } from "zod";
import { bindingsOf } from "../../../src/http/bindings.ts";
import { limitBody } from "../../../src/http/body-limit.ts";
import { isFromHere, nameSource } from "../../../src/http/client-address.ts";
import { createSecretGuard } from "../../../src/http/secret-guard.ts";
import type { Setup } from "../../../src/port/setup.ts";
import { RequestError } from "../errors.ts";
import type { SetupOffer } from "../page/wire.ts";
import { readBody } from "./body.ts";

const MAX_JSON_BYTES = 64 * 1024;
const VALUES = z.record(
  z.string().regex(/^[A-Z_]{1,40}$/),
  z
    .string()
    .max(2_000, "A value can have at most 2,000 characters.")
    .regex(/^[^\p{Cc}]*$/u, "A value must be one line without control characters."),
);
const FILLED_IN = z.object({ values: VALUES });
const CHECK = z.object({ stepId: z.string().max(40), values: VALUES });

export interface SetupRouteDeps {
  /** Absent: the page does not offer the setup. */
  setup: Setup | undefined;
  /** True if only people with the page's password reach these routes. */
  hasPassword: boolean;
  adminPassword: string | undefined;
  log: Logger;
}

/**
 * Serves the setup. The setup makes this process call URLs that a person enters, and can write the process's `.env`, so
 * it is open only to people on this machine and to people who send ADMIN_PASSWORD. Without an ADMIN_PASSWORD, the
 * page's password is enough while nothing is configured. The entered values are stored only in `.env`.
 */
export function createSetupRoutes({ setup: offered, hasPassword, adminPassword, log }: SetupRouteDeps): Hono {
  const guard =
    adminPassword &&
    createSecretGuard({ secret: adminPassword, name: "ADMIN_PASSWORD", log, now: () => performance.now() });

  /** Throws if the request has a wrong ADMIN_PASSWORD. */
  function admit(c: Context): Setup | "locked" | "closed" {
    const { incoming } = bindingsOf(c);
    if (offered === undefined) return "closed";
    if (isFromHere(incoming)) return offered;
    if (!guard) return hasPassword && !offered.isConfigured() ? offered : "closed";
    const given = c.req.header("X-Admin-Password");
    if (given === undefined) return "locked";
    const verdict = guard.judge(decode(given), { address: nameSource(incoming) });
    if (verdict.kind === "right") return offered;
    if (verdict.kind === "wrong") throw new RequestError(403, "This is not the administrator's password.");
    const seconds = Math.ceil(verdict.waitMs / 1_000);
    throw new RequestError(429, `Too many wrong passwords. Try again in ${seconds} s.`);
  }

  const openSetup = (c: Context): Setup => {
    const setup = admit(c);
    if (setup === "locked")
      throw new RequestError(403, "Setup from another machine needs the administrator's password.");
    if (setup === "closed") throw new RequestError(403, "Setup is not available here: use npm run setup.");
    return setup;
  };
  const json = limitBody({ maxBytes: MAX_JSON_BYTES, tooLong: "The request is too large." });
  const routes = new Hono();
  routes.use(async (c, next) => {
    c.header("Cache-Control", "no-store");
    await next();
  });
  routes.get("/", (c) => {
    const setup = admit(c);
    const offer: SetupOffer =
      typeof setup === "string"
        ? { steps: [], target: null, isLocked: setup === "locked" }
        : { steps: setup.steps({}), target: setup.target() ?? null, isLocked: false };
    return c.json(offer);
  });
  routes.post("*", async (c, next) => {
    openSetup(c);
    await next();
  });
  routes.post("/steps", json, async (c) => c.json(openSetup(c).steps((await readBody(c, FILLED_IN)).values)));
  routes.post("/check", json, async (c) => {
    const { stepId, values } = await readBody(c, CHECK);
    return c.json(await openSetup(c).check(stepId, values, c.req.raw.signal));
  });
  routes.post("/models", json, async (c) => {
    const { values } = await readBody(c, FILLED_IN);
    return c.json(await openSetup(c).listModels(values, c.req.raw.signal));
  });
  routes.post("/env", json, async (c) => c.json(openSetup(c).toEnvFile((await readBody(c, FILLED_IN)).values)));
  routes.post("/save", json, async (c) => {
    const setup = openSetup(c);
    return c.json({ problems: setup.save((await readBody(c, FILLED_IN)).values) });
  });
  return routes;
}

/** A header with an invalid encoding contains no password. */
function decode(header: string): string {
  try {
    return decodeURIComponent(header);
  } catch {
    return "";
  }
}
