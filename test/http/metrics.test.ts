import { expect, test } from "vitest";
import { createMetricsRoutes } from "../../src/http/server.ts";
import { createMetrics } from "../../src/metrics/metrics.ts";

test("GET /metrics answers in Prometheus' text format", async () => {
  const metrics = createMetrics();
  metrics.turnEnded("complete");
  const answer = await createMetricsRoutes(metrics, { admit: () => true }).request("/metrics");
  expect(answer.status).toBe(200);
  expect(answer.headers.get("content-type")).toMatch(/^text\/plain; version=/);
  expect(await answer.text()).toContain('palaver_turns_total{outcome="complete"} 1');
});
