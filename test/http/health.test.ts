import { describe, expect, test, vi } from "vitest";
import type { Insiders } from "../../src/http/insiders.ts";
import { createHealthRoutes } from "../../src/http/server.ts";

const yes = () => Promise.resolve(true);

const everybody: Insiders = { admit: () => true };

describe("health routes", () => {
  test("/readyz reports the state of other services, which does not decide readiness", async () => {
    const routes = createHealthRoutes({ store: yes }, everybody, { gateway: () => "key refused" });
    const answer = await routes.request("/readyz");
    expect(answer.status).toBe(200);
    expect(await answer.json()).toEqual({ status: "ready", checks: { store: "ok" }, gateway: "key refused" });
  });

  test("/readyz leaves no timer running", async () => {
    vi.useFakeTimers();
    try {
      await createHealthRoutes({ store: yes }, everybody).request("/readyz");
      expect(vi.getTimerCount()).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });

  test("/readyz names each check that failed, threw or hangs", async () => {
    vi.useFakeTimers();
    try {
      const routes = createHealthRoutes(
        {
          fine: yes,
          off: () => Promise.resolve(false),
          broken: () => Promise.reject(new Error("no connection")),
          odd: () => {
            throw new Error("at once");
          },
          stuck: () => new Promise<boolean>(() => {}),
        },
        everybody,
      );
      const asked = routes.request("/readyz");
      await vi.advanceTimersByTimeAsync(2000);
      const answer = await asked;
      expect(answer.status).toBe(503);
      expect(await answer.json()).toEqual({
        status: "not ready",
        checks: { fine: "ok", off: "failed", broken: "failed", odd: "failed", stuck: "timed out" },
      });
    } finally {
      vi.useRealTimers();
    }
  });
});
