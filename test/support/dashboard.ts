import { onTestFinished } from "vitest";
import { type AdminAct, type AdminOptions, createAdmin } from "../../src/admin/admin.ts";
import type { Now } from "../../src/admin/page/wire.ts";
import type { AdminConfig } from "../../src/config/config.ts";
import { startHttpServer } from "../../src/http/server.ts";
import { createInsight, type Insight } from "../../src/insight/insight.ts";
import { createMetrics } from "../../src/metrics/metrics.ts";
import { type EngineOptions, startEngine } from "./engine.ts";
import { silent } from "./log.ts";

export const PASSWORD = "correct horse battery";

export interface ReplicaOptions
  extends EngineOptions,
    Partial<Pick<AdminOptions, "note" | "examine" | "readSettings">> {
  /** Its name on the dashboard. */
  name?: string;
  admin?: Partial<AdminConfig>;
}

/** A bot with its dashboard, as a process of the service has them. On Redis, several share what they know. */
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
  breakers: [],
};

/** What a browser does at the dashboard, without one. */
export interface Administrator {
  ask(path: string, init?: RequestInit): Promise<Response>;
  /** Rejects where it is not answered with 200. */
  read<T>(path: string, init?: RequestInit): Promise<T>;
  /** What all processes do, as the live stream says it, when it holds. */
  until(holds: (now: Now) => boolean): Promise<Now>;
  cookie: string;
  csrfToken: string;
}

/** Comes in with the password, or with what another replica has given. */
export async function comeIn(url: string, given?: Pick<Administrator, "cookie" | "csrfToken">): Promise<Administrator> {
  const { cookie, csrfToken } = given ?? (await enter(url));
  const ask = (path: string, init: RequestInit = {}) =>
    fetch(`${url}/admin/api/${path}`, {
      ...init,
      headers: { Origin: url, cookie, "x-csrf-token": csrfToken, ...(init.headers as Record<string, string>) },
    });

  return {
    ask,
    cookie,
    csrfToken,
    async read<T>(path: string, init?: RequestInit) {
      const response = await ask(path, init);
      if (response.status !== 200) throw new Error(`${path} is answered with ${response.status}`);
      return (await response.json()) as T;
    },
    async until(holds) {
      const response = await ask("live");
      const decoder = new TextDecoder();
      let text = "";
      for await (const bytes of response.body ?? []) {
        text += decoder.decode(bytes as Uint8Array, { stream: true });
        const events = text.split("\n\n");
        text = events.pop() ?? "";
        const found = events.map((event) => JSON.parse(event.replace(/^[\s\S]*?data: /, "")) as Now).find(holds);
        if (found !== undefined) return found;
      }
      throw new Error("The stream has ended.");
    },
  };
}

export function tryPassword(url: string, password: string, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${url}/admin/api/session`, {
    method: "POST",
    headers: { Origin: url, "content-type": "application/json", ...headers },
    body: JSON.stringify({ password }),
  });
}

async function enter(url: string): Promise<Pick<Administrator, "cookie" | "csrfToken">> {
  const response = await tryPassword(url, PASSWORD);
  const { csrfToken } = (await response.json()) as { csrfToken: string };
  return { csrfToken, cookie: response.headers.getSetCookie()[0]?.split(";")[0] ?? "" };
}
