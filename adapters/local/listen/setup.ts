import { type Context, Hono } from "hono";
import { z } from "zod";
import { bindingsOf } from "../../../src/http/bindings.ts";
import { limitBody } from "../../../src/http/body-limit.ts";
import { isFromHere } from "../../../src/http/client-address.ts";
import type { Setup } from "../../../src/port/setup.ts";
import { RequestError } from "../errors.ts";
import type { SetupOffer } from "../page/wire.ts";
import { readBody } from "./body.ts";

const MAX_JSON_BYTES = 64 * 1024;
const VALUES = z.record(
  z.string().regex(/^[A-Z_]{1,40}$/),
  z
    .string()
    .max(2_000, "A value has at most 2,000 characters.")
    .regex(/^[^\p{Cc}]*$/u, "A value is one line, without control characters."),
);
const FILLED_IN = z.object({ values: VALUES });
const CHECK = z.object({ stepId: z.string().max(40), values: VALUES });

export interface SetupRouteDeps {
  /** Absent: everything is set up, and nothing is offered. */
  setup: Setup | undefined;
  /** Only people who gave the password get here. */
  hasPassword: boolean;
}

/**
 * Serves the first run, to people on this machine and to those who gave the page's password alone: it makes this process
 * call the addresses that are filled in, and may write its `.env`. The values filled in are kept nowhere else.
 */
export function createSetupRoutes({ setup: offered, hasPassword }: SetupRouteDeps): Hono {
  const setupFor = (c: Context) =>
    offered !== undefined && (hasPassword || isFromHere(bindingsOf(c).incoming)) ? offered : undefined;
  const openSetup = (c: Context): Setup => {
    const setup = setupFor(c);
    if (setup === undefined) throw new RequestError(403, "Setting up is not offered here: use npm run setup.");
    return setup;
  };
  const json = limitBody({ maxBytes: MAX_JSON_BYTES, tooLong: "This is too much for one request." });
  const routes = new Hono();
  routes.use(async (c, next) => {
    c.header("Cache-Control", "no-store");
    await next();
  });
  routes.get("/", (c) => {
    const setup = setupFor(c);
    return c.json({ steps: setup?.steps({}) ?? [], target: setup?.target() ?? null } satisfies SetupOffer);
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
