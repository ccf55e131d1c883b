import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { monitorEventLoopDelay } from "node:perf_hooks";
import type { DatabaseSync } from "node:sqlite";
import type { Hono } from "hono";
import type { Logger } from "pino";
import packageFile from "../../package.json" with { type: "json" };
import type { Admin } from "../admin/admin.ts";
import type { SettingsPart } from "../admin/page/wire.ts";
import type { Config } from "../config/config.ts";
import { secretsOf, tokenForms } from "../config/summary.ts";
import { createInsight, type Insight, withTrends } from "../insight/insight.ts";
import type { ProcessReport } from "../insight/processes.ts";
import { createRedactor } from "../log/redact.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { Scheduler } from "../pacing/scheduler.ts";
import type { Adapter } from "../port/adapter.ts";
import type { Queue } from "../queue/queue.ts";
import type { Stores } from "../store/keyv.ts";
import type { OpenGateway } from "./gateway.ts";
import type { InForceDeps } from "./settings-in-force.ts";

/**
 * Interval between samples of the event loop's delay. A shorter interval would wake the process too often. Node's
 * delays include the interval, so it is subtracted from them.
 */
const LAG_SAMPLE_MS = 100;
/** Samples older than this are dropped. */
const LAG_KEPT_MS = 10_000;
const NANOSECONDS_PER_MS = 1e6;

export interface ProcessState {
  adapters: readonly Adapter[];
  queue: Pick<Queue, "depth">;
  isStoreReachable(): Promise<boolean>;
  /** The gateway. Its health is undefined for the embedded sandbox. */
  gateway: Pick<OpenGateway, "health" | "countPaused">;
  scheduler: Pick<Scheduler, "budgets">;
}

export interface DashboardOptions {
  config: Config;
  stores: Pick<Stores, "open" | "inTurn" | "shared" | "now" | "counters">;
  database: DatabaseSync;
  readState(): ProcessState;
  log: Logger;
}

/** This process's part of the dashboard. Without an admin password, it collects and loads nothing. */
export interface Dashboard {
  insight: Insight | undefined;
  /** Wraps the metrics so that counts also go into the trends. */
  alsoCounts(metrics: Metrics): Metrics;
  /** Resolves to the routes below `/admin`. Call it only once. */
  mount(deps: AdminDeps): Promise<Hono[]>;
  begin(): void;
  close(): Promise<void>;
}

export function openDashboard(options: DashboardOptions): Dashboard {
  const insight = openInsight(options);
  let admin: Admin | undefined;
  return {
    insight,
    alsoCounts: (metrics) => (insight === undefined ? metrics : withTrends(metrics, insight.trends)),
    async mount(deps) {
      if (insight !== undefined) admin = await openAdmin(options, insight, deps);
      return admin === undefined ? [] : [admin.app];
    },
    begin: () => insight?.processes.begin(),
    async close() {
      admin?.close();
      await insight?.close();
    },
  };
}

function openInsight({ config, stores, database, readState, log }: DashboardOptions): Insight | undefined {
  if (config.admin === undefined) return undefined;
  const processName = `${hostname()}:${process.pid}`;
  const startedAt = Date.now();
  const loop = monitorEventLoopDelay({ resolution: LAG_SAMPLE_MS });
  loop.enable();
  const forgetting = setInterval(() => loop.reset(), LAG_KEPT_MS).unref();

  async function describe(running: ProcessReport["running"]): Promise<ProcessReport> {
    const { adapters, queue, isStoreReachable, gateway, scheduler } = readState();
    const connecting = config.role === "worker" ? [] : adapters;
    return {
      v: 1,
      name: processName,
      role: config.role,
      version: packageFile.version,
      startedAt,
      at: Date.now(),
      memoryBytes: process.memoryUsage.rss(),
      loopLagMs: Math.max(0, loop.percentile(99) / NANOSECONDS_PER_MS - LAG_SAMPLE_MS),
      places: config.role === "ingress" ? 0 : config.limits.maxConcurrentTurns,
      ...queue.depth(),
      isStoreReachable: await isStoreReachable(),
      gateway: gateway.health?.state() ?? "the embedded sandbox",
      platforms: Object.fromEntries(connecting.map((adapter) => [adapter.platform, adapter.isConnected()])),
      budgets: scheduler.budgets().map(({ key, replies, nextInMs = null }) => ({ key, replies, nextInMs })),
      pausedModels: gateway.countPaused(),
      running,
    };
  }

  const insight = createInsight({ stores, database, processName, describe, log });
  return {
    ...insight,
    close() {
      clearInterval(forgetting);
      loop.disable();
      return insight.close();
    },
  };
}

export interface AdminDeps extends Omit<InForceDeps, "config" | "names"> {
  /** Signs the token that the dashboard's page sends with every change. */
  csrfKey: string;
}

async function openAdmin(
  { config, stores, readState, log }: DashboardOptions,
  insight: Insight,
  deps: AdminDeps,
): Promise<Admin | undefined> {
  const { admin } = config;
  if (admin === undefined) return undefined;
  const { createAdmin } = await import("../admin/admin.ts");
  const { text: redact } = createRedactor(secretsOf(config), tokenForms(config.modules));
  return createAdmin({
    ...deps,
    insight,
    stores,
    admin,
    log,
    adapterOf: (platform) => readState().adapters.find((adapter) => adapter.platform === platform),
    isSecure: config.publicUrl?.startsWith("https:") === true,
    async examine({ mayChat }) {
      const { createSections, examineSection } = await import("../doctor/sections.ts");
      const policy = { ...config.policy, policy: deps.policy() };
      const sections = createSections({ ...config, policy }, { mayChat, policyWarnings: deps.policyWarnings() });
      return Promise.all(
        sections.map(async (section) => {
          const findings = await examineSection(section);
          return {
            title: section.title,
            findings: findings.map(({ ok, what, fix }) => ({
              ok,
              what: redact(what),
              ...(fix && { fix: redact(fix) }),
            })),
          };
        }),
      );
    },
    async readSettings(names) {
      // Imported on demand, because it loads the YAML printer, which would slow down every start.
      const { readInForce } = await import("./settings-in-force.ts");
      const parts = await readInForce({ ...deps, config, names });
      const rowsOf = ({ rows }: SettingsPart) => rows.map(({ name, value }) => ({ name, value: redact(value) }));
      return parts.map((part) => ({ ...part, rows: rowsOf(part) }));
    },
    async note({ by, act, turnId, conversationId, reply }) {
      log.info({ by, turnId, conversationId }, `an administrator ${act}`);
      const author = { id: "admin", name: by };
      const after = `${act}: turn ${turnId} of ${conversationId}`;
      const event = { key: `admin:${randomUUID()}`, author, reply };
      const isNoted = await deps.audit.note({ event, what: "dashboard", after });
      if (!isNoted) throw new Error("The store did not accept the audit entry of an administrator's action.");
    },
  });
}
