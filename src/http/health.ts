import { Hono } from "hono";
import type { Metrics } from "../metrics/metrics.ts";
import type { Insiders } from "./insiders.ts";

/** Resolves to whether what it is named after works. May reject or hang: both count as no. */
export type HealthCheck = () => Promise<boolean>;

const CHECK_TIMEOUT_MS = 2000;

/**
 * `GET /healthz`: this process is alive, whatever else is not. `GET /readyz`: 200 when every check says yes,
 * else 503. Insiders are told each check by its name, and each of the `states`, which others may be to blame for and
 * which change no status; strangers are told only what it all comes to.
 */
export function createHealthRoutes(
  checks: Readonly<Record<string, HealthCheck>>,
  insiders: Insiders,
  states: Readonly<Record<string, () => string>> = {},
): Hono {
  return new Hono()
    .get("/healthz", (context) => context.json({ status: "ok" }))
    .get("/readyz", async (context) => {
      const results = await Promise.all(
        Object.entries(checks).map(async ([name, check]) => [name, await runCheck(check)] as const),
      );
      const told = Object.fromEntries(Object.entries(states).map(([name, tell]) => [name, tell()]));
      const ready = results.every(([, result]) => result === "ok");
      const status = ready ? "ready" : "not ready";
      const isInsider = insiders.admit(context) === true;
      const body = isInsider ? { status, checks: Object.fromEntries(results), ...told } : { status };
      return context.json(body, ready ? 200 : 503);
    });
}

async function runCheck(check: HealthCheck): Promise<"ok" | "failed" | "timed out"> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<"timed out">((resolve) => {
    timer = setTimeout(resolve, CHECK_TIMEOUT_MS, "timed out");
  });
  const outcome = Promise.resolve()
    .then(check)
    .then(
      (works) => (works ? "ok" : "failed"),
      () => "failed" as const,
    );
  try {
    return await Promise.race([outcome, timeout]);
  } finally {
    clearTimeout(timer);
  }
}

/** `GET /metrics` for Prometheus. */
export function createMetricsRoutes(metrics: Pick<Metrics, "render">, insiders: Insiders): Hono {
  return new Hono().get("/metrics", async (context) => {
    const admitted = insiders.admit(context);
    if (admitted !== true) return admitted;
    const { contentType, body } = await metrics.render();
    return context.body(body, 200, { "content-type": contentType });
  });
}
