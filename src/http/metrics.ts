import { Hono } from "hono";
import type { Metrics } from "../metrics/metrics.ts";
import type { Insiders } from "./insiders.ts";

/** `GET /metrics` for Prometheus. */
export function createMetricsRoutes(metrics: Pick<Metrics, "render">, insiders: Insiders): Hono {
  return new Hono().get("/metrics", async (context) => {
    const admitted = insiders.admit(context);
    if (admitted !== true) return admitted;
    const { contentType, body } = await metrics.render();
    return context.body(body, 200, { "content-type": contentType });
  });
}
