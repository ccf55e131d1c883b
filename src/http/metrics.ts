import { Hono } from "hono";
import type { Metrics } from "../metrics.ts";

/** `GET /metrics` for Prometheus. */
export function createMetricsRoutes(metrics: Pick<Metrics, "render">): Hono {
  return new Hono().get("/metrics", async (context) => {
    const { contentType, body } = await metrics.render();
    return context.body(body, 200, { "content-type": contentType });
  });
}
