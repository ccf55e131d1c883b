import { describe, expect, onTestFinished, test, vi } from "vitest";
import { createMetrics } from "../../src/metrics/metrics.ts";

describe("createMetrics", () => {
  test("the metrics count every event that the bot reports", async () => {
    const metrics = createMetrics();
    metrics.turnEnded("complete");
    metrics.turnEnded("complete");
    metrics.turnEnded("failed");
    metrics.firstToken(0.3);
    metrics.firstVisible(0.9);
    metrics.tokens("prompt", 120, false);
    metrics.tokens("completion", 30, true);
    metrics.platformCall("slack", "post");
    metrics.platformCall("slack", "edit");
    metrics.rateLimited("platform");
    metrics.streamOpened();
    metrics.streamOpened();
    metrics.streamClosed();
    metrics.intakeFailed();
    metrics.takenOver();
    metrics.givenUp();
    const { body, contentType } = await metrics.render();
    expect(contentType).toMatch(/^text\/plain/);
    expect(body.split("\n")).toEqual(
      expect.arrayContaining([
        'palaver_turns_total{outcome="complete"} 2',
        'palaver_turns_total{outcome="failed"} 1',
        'palaver_first_token_seconds_bucket{le="0.25"} 0',
        'palaver_first_token_seconds_bucket{le="0.5"} 1',
        "palaver_first_visible_seconds_count 1",
        'palaver_tokens_total{direction="prompt",estimated="false"} 120',
        'palaver_tokens_total{direction="completion",estimated="true"} 30',
        'palaver_platform_calls_total{platform="slack",call="post"} 1',
        'palaver_platform_calls_total{platform="slack",call="edit"} 1',
        'palaver_rate_limits_total{side="platform"} 1',
        'palaver_rate_limits_total{side="gateway"} 0',
        "palaver_upstream_streams_open 1",
        "palaver_intake_failures_total 1",
        "palaver_taken_over_total 1",
        "palaver_given_up_total 1",
      ]),
    );
  });

  test("the metrics wake an idle process at most ten times per second", async () => {
    const metrics = createMetrics();
    const readDelay = async () => {
      const { body } = await metrics.render();
      const [, delay] = /^palaver_nodejs_eventloop_lag_p50_seconds (.+)$/m.exec(body) ?? [];
      // The time between two samples. It is longer if a sample is late.
      expect(Number(delay)).toBeGreaterThan(0.09);
    };
    // Each reading resets the samples.
    await vi.waitFor(readDelay, { interval: 400, timeout: 4_000 });
  });

  test("the metrics read their gauges at every request", async () => {
    const metrics = createMetrics();
    expect((await metrics.render()).body).toContain("palaver_queue_waiting 0");
    let waiting = 1;
    metrics.observe("queue_waiting", () => waiting);
    expect((await metrics.render()).body).toContain("palaver_queue_waiting 1");
    waiting = 7;
    expect((await metrics.render()).body).toContain("palaver_queue_waiting 7");
  });

  test("the metrics have one series per platform", async () => {
    const metrics = createMetrics();
    metrics.observe("platform_connected", () => ({ slack: 1, discord: 0 }));
    const { body } = await metrics.render();
    expect(body).toContain('palaver_platform_connected{platform="slack"} 1');
    expect(body).toContain('palaver_platform_connected{platform="discord"} 0');
    metrics.observe("platform_connected", () => ({ discord: 1 }));
    expect((await metrics.render()).body).not.toContain('platform="slack"');
  });

  test("the metrics appear even if the service cannot read some of them", async () => {
    const metrics = createMetrics();
    metrics.observe("store_reachable", () => Promise.reject(new Error("away")));
    metrics.observe("platform_connected", () => {
      throw new Error("broken");
    });
    const { body } = await metrics.render();
    expect(body).toContain("palaver_store_reachable 0");
    expect(body).not.toMatch(/^palaver_platform_connected/m);
  });

  // The observers of the runtime exist as long as the process.
  test("two sets of metrics share the observers of the runtime", () => {
    const observe = vi.spyOn(PerformanceObserver.prototype, "observe");
    onTestFinished(() => observe.mockRestore());
    createMetrics();
    createMetrics();
    expect(observe.mock.calls.length).toBeLessThanOrEqual(1);
  });

  test("the metrics never throw on a number that they cannot count", () => {
    const metrics = createMetrics();
    for (const odd of [NaN, -1, Infinity]) {
      metrics.tokens("prompt", odd, false);
      metrics.firstToken(odd);
      metrics.firstVisible(odd);
    }
  });
});
