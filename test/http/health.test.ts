import { describe, expect, test, vi } from "vitest";
import { createHealthRoutes } from "../../src/http/health.ts";

const yes = () => Promise.resolve(true);

describe("health routes", () => {
  test("say that the process is alive, whatever else is not", async () => {
    const answer = await createHealthRoutes({ store: () => Promise.resolve(false) }).request("/healthz");
    expect(answer.status).toBe(200);
    expect(await answer.json()).toEqual({ status: "ok" });
  });

  test("are ready when every check says yes", async () => {
    const answer = await createHealthRoutes({ store: yes, slack: yes }).request("/readyz");
    expect(answer.status).toBe(200);
    expect(await answer.json()).toEqual({ status: "ready", checks: { store: "ok", slack: "ok" } });
  });

  test("are ready when there is nothing to check", async () => {
    expect((await createHealthRoutes({}).request("/readyz")).status).toBe(200);
  });

  test("leave no timer behind", async () => {
    vi.useFakeTimers();
    try {
      await createHealthRoutes({ store: yes }).request("/readyz");
      expect(vi.getTimerCount()).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });

  test("name what failed, threw or does not end", async () => {
    vi.useFakeTimers();
    try {
      const routes = createHealthRoutes({
        fine: yes,
        off: () => Promise.resolve(false),
        broken: () => Promise.reject(new Error("no connection")),
        odd: () => {
          throw new Error("at once");
        },
        stuck: () => new Promise<boolean>(() => {}),
      });
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
