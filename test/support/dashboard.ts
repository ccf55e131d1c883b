import { onTestFinished } from "vitest";
import { PASSWORD } from "../../lab/support/administrator.ts";
import { type EngineOptions, startEngine } from "../../lab/support/engine.ts";
import { silent } from "../../lab/support/log.ts";
import { type AdminAct, type AdminOptions, createAdmin } from "../../src/admin/admin.ts";
import type { AdminConfig } from "../../src/config/config.ts";
import { startHttpServer } from "../../src/http/server.ts";
import { createInsight, type Insight } from "../../src/insight/insight.ts";
import { createMetrics } from "../../src/metrics/metrics.ts";

export interface ReplicaOptions
  extends EngineOptions,
    Partial<Pick<AdminOptions, "note" | "examine" | "readSettings">> {
  name?: string;
  admin?: Partial<AdminConfig>;
}

/** A bot with its dashboard, as in a process of the service. With Redis, several bots share their data. */
export async function startReplica({ name = "one", admin, ...options }: ReplicaOptions = {}) {
  let insight: Insight | undefined;
  const acts: AdminAct[] = [];
  const engine = startEngine({
    ...options,
    openInsight(stores, database) {
      const describe = (running: ReturnType<Insight["turns"]["running"]>) => ({
        ...WELL,
        name,
        at: Date.now(),
        running,
      });
      insight = createInsight({ stores, database, processName: name, describe, log: silent });
      return insight;
    },
  });
  if (insight === undefined) throw new Error("The engine was not told of the dashboard.");
  const known = insight;
  known.processes.begin();
  const dashboard = createAdmin({
    ...engine,
    insight: known,
    admin: { password: PASSWORD, proxy: undefined, allowedHosts: [], ...admin },
    csrfKey: "c".repeat(32),
    isSecure: false,
    examine: async () => [{ title: "Storage", findings: [{ ok: true, what: "There is room on its disk." }] }],
    readSettings: async () => [{ title: "Configuration", rows: [{ name: "Gateway", value: "the sandbox" }] }],
    note: async (act) => void acts.push(act),
    log: silent,
    ...options,
    adapterOf: () => ({ ...NAMES, ...engine.adapter }),
  });
  const server = await startHttpServer({
    host: "127.0.0.1",
    port: 0,
    log: silent,
    health: {},
    metrics: createMetrics(),
    mounts: [dashboard.app],
    closeTimeoutMs: 0,
  });
  onTestFinished(async () => {
    dashboard.close();
    await server.close();
    await engine.queue.close(0);
    await known.close();
  });
  return { ...engine, insight: known, acts, url: server.url };
}

/** A platform that knows the names of its places. */
const NAMES = { namePlace: async () => ({ workspace: "Acme", channel: "#general" }) };

const WELL = {
  v: 1 as const,
  role: "all",
  version: "0.0.0",
  startedAt: Date.now(),
  memoryBytes: 100_000_000,
  loopLagMs: 1,
  places: 16,
  active: 0,
  waiting: 0,
  isStoreReachable: true,
  gateway: "ok",
  platforms: { test: true },
  budgets: [],
  pausedModels: 0,
};
