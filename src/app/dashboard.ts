import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { monitorEventLoopDelay } from "node:perf_hooks";
import type { DatabaseSync } from "node:sqlite";
import type { Hono } from "hono";
import type { Logger } from "pino";
import packageFile from "../../package.json" with { type: "json" };
import type { Admin, AdminOptions } from "../admin/admin.ts";
import type { SettingsPart } from "../admin/page/wire.ts";
import type { Config } from "../config/config.ts";
import { secretsOf } from "../config/summary.ts";
import { createInsight, type Insight, withTrends } from "../insight/insight.ts";
import type { ProcessReport } from "../insight/processes.ts";
import { createRedactor } from "../log/redact.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { Scheduler } from "../pacing/scheduler.ts";
import type { Audit } from "../policy/audit.ts";
import type { Adapter } from "../port/adapter.ts";
import type { Queue } from "../queue/queue.ts";
import type { Settings } from "../settings/settings.ts";
import type { Stores } from "../store/keyv.ts";
import type { OpenGateway } from "./gateway.ts";
import type { InForceDeps } from "./settings-in-force.ts";

/** Each sample of the event loop wakes the process; the delays that it measures include this time. */
const LAG_SAMPLE_MS = 100;
/** Delays older than this are forgotten. */
const LAG_KEPT_MS = 10_000;
const NANOSECONDS_PER_MS = 1e6;

export interface ProcessState {
  adapters: readonly Adapter[];
  queue: Pick<Queue, "depth">;
  isStoreReachable(): Promise<boolean>;
  /** Its health is undefined for the embedded sandbox. */
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

/** Everything a process contributes to the dashboard. Without an admin password nothing is collected or loaded. */
export interface Dashboard {
  insight: Insight | undefined;
  /** The same metrics, counted over time as well. */
  alsoCounts(metrics: Metrics): Metrics;
  /** Resolves to the routes at `/admin`. At most once. */
  mount(deps: AdminDeps): Promise<Hono[]>;
  /** Begins to tell of this process. */
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
    const heard = config.role === "worker" ? [] : adapters;
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
      platforms: Object.fromEntries(heard.map((adapter) => [adapter.platform, adapter.isConnected()])),
      budgets: scheduler.budgets().map(({ key, replies, nextInMs = null }) => ({ key, replies, nextInMs })),
      breakers: [{ name: "Breakers", state: describeBreakers(gateway.countPaused()) }],
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

function describeBreakers(paused: number): string {
  if (paused === 0) return "closed";
  return paused === 1 ? "one model is left alone" : `${paused} models are left alone`;
}

export interface AdminDeps
  extends Pick<AdminOptions, "usage" | "records" | "history" | "queue" | "csrfKey">,
    Omit<InForceDeps, "config" | "audit"> {
  audit: Pick<Audit, "note" | "read">;
  settings: Settings;
}

async function openAdmin(
  { config, stores, log }: DashboardOptions,
  insight: Insight,
  { audit, ...deps }: AdminDeps,
): Promise<Admin | undefined> {
  const { admin } = config;
  if (admin === undefined) return undefined;
  const { createAdmin } = await import("../admin/admin.ts");
  const { text: redact } = createRedactor(secretsOf(config));
  return createAdmin({
    ...deps,
    insight,
    stores,
    admin,
    log,
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
    async readSettings() {
      // With it comes the printer of YAML, which no start has to wait for.
      const { readInForce } = await import("./settings-in-force.ts");
      const parts = await readInForce({ ...deps, config, audit });
      const rowsOf = ({ rows }: SettingsPart) => rows.map(({ name, value }) => ({ name, value: redact(value) }));
      return parts.map((part) => ({ ...part, rows: rowsOf(part) }));
    },
    async note({ by, act, turnId, conversationId, reply }) {
      log.info({ by, turnId, conversationId }, `an administrator ${act}`);
      const author = { id: "admin", name: by };
      const after = `${act}: turn ${turnId} of ${conversationId}`;
      const event = { key: `admin:${randomUUID()}`, author, reply };
      const isNoted = await audit.note({ event, what: "dashboard", after });
      if (!isNoted) throw new Error("The store did not keep an administrator's act.");
    },
  });
}
