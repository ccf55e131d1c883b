import { type Context, Hono } from "hono";
import type { Logger } from "pino";
import type { AdminConfig } from "../config/config.ts";
import { hasLeft } from "../http/bindings.ts";
import { checkHost, checkOrigin, hardenHeaders } from "../http/page-access.ts";
import { createPageAssets } from "../http/page-assets.ts";
import type { Insight } from "../insight/insight.ts";
import type { ProcessReport } from "../insight/processes.ts";
import { RANGES, type RangeName } from "../insight/trends.ts";
import type { ReplyAddress } from "../port/events.ts";
import type { Stores } from "../store/keyv.ts";
import type { Usage } from "../usage/usage.ts";
import { createAccess } from "./access.ts";
import { createDoctorRoutes, type Examine } from "./doctor.ts";
import { createInspector, type InspectorDeps } from "./inspector.ts";
import { createLive } from "./live.ts";
import { createNames, type Names, type NamesOptions } from "./names.ts";
import { createReadOverview } from "./overview.ts";
import type { SettingsPart } from "./page/wire.ts";
import { createSessions } from "./sessions.ts";
import { createReadUsed, toWireTrends } from "./spending.ts";
import { createStopTurn, type StopDeps, type StopResult } from "./stop.ts";

const PAGES = ["overview", "trends", "failures", "conversations", "doctor", "settings"];
const VENDOR: ReadonlyMap<string, readonly string[]> = new Map([
  [
    "lit-html",
    [
      "lit-html.js",
      "directive.js",
      "directive-helpers.js",
      "async-directive.js",
      "directives/ref.js",
      "directives/repeat.js",
    ],
  ],
  ["uplot", ["dist/uPlot.esm.js", "dist/uPlot.min.css"]],
]);

/** How the audit log words each result of a Stop. */
const STOPS = {
  stopped: "stopped an answer",
  ended: "tried to stop an answer, but it ended first",
  running: "tried to stop an answer, but it was still running seconds later",
} as const;

export interface AdminAct {
  by: string;
  act: "opened the messages of a conversation" | (typeof STOPS)[StopResult["result"]];
  turnId: string;
  conversationId: string;
  reply: ReplyAddress;
}

export interface AdminOptions extends InspectorDeps, StopDeps {
  admin: AdminConfig;
  /** Signs the token that the dashboard's page sends with every change. */
  csrfKey: string;
  isSecure: boolean;
  stores: Pick<Stores, "open" | "inTurn">;
  insight: Insight;
  usage: Usage;
  adapterOf: NamesOptions["adapterOf"];
  examine: Examine;
  readSettings(names: Names): Promise<SettingsPart[]>;
  /** Writes an audit entry. If this rejects, a request for messages fails too; a Stop has already happened. */
  note(act: AdminAct): Promise<void>;
  log: Logger;
}

export interface Admin {
  /** Serves `/admin` and everything below it. Must be mounted at the root of the process's HTTP server. */
  app: Hono;
  close(): void;
}

/** Creates the dashboard, which shows what all processes do. Only its Stop button changes anything. */
export function createAdmin(options: AdminOptions): Admin {
  const { admin, stores, insight, isSecure, csrfKey, log, note } = options;
  const sessions = createSessions({
    keyv: stores.open("admin"),
    inTurn: stores.inTurn,
    password: admin.password ?? "",
    now: Date.now,
  });
  const access = createAccess({ admin, sessions, csrfKey, isSecure, log });
  const names = createNames({ adapterOf: options.adapterOf, now: Date.now });
  const nameReport = async (report: ProcessReport) => ({ ...report, running: await names.stories(report.running) });
  const readProcesses = async () => Promise.all((await insight.processes.read()).map(nameReport));
  const live = createLive({ read: readProcesses }, Date.now);
  const stopTurn = createStopTurn(options);
  const inspector = createInspector(options);
  const readUsed = createReadUsed(options.usage, Date.now);
  const { records } = options;
  const readOverview = createReadOverview({ insight, records, readUsed, names, now: Date.now });
  const api = new Hono();
  api.route("/", access.routes);
  api.use("*", access.check);

  api.get("/live", (c) => {
    const stream = live.open(() => access.isSignedIn(c));
    if (stream === undefined) return c.json({ error: "This page is open in too many tabs. Close one." }, 503);
    return c.body(stream, 200, {
      "Content-Type": "text/event-stream; charset=utf-8",
      // Tells Nginx and similar proxies not to buffer the stream.
      "X-Accel-Buffering": "no",
    });
  });
  api.post("/turns/:turnId/stop", async (c) => {
    const by = access.nameOf(c);
    const turnId = c.req.param("turnId");
    log.info({ by, turnId }, "an administrator pressed Stop");
    const stop = await stopTurn(turnId);
    if (stop === undefined) return c.json({ error: "This answer has already ended." }, 404);
    const { conversationId, reply } = stop.story;
    // Write the audit entry after the stop, because the entry contains the stop's result.
    await note({ by, act: STOPS[stop.result], turnId, conversationId, reply });
    return c.json({});
  });
  api.get("/trends/:range", async (c) => {
    const range = c.req.param("range");
    if (!isRange(range)) return c.json({ error: "Unknown range." }, 404);
    return c.json(toWireTrends(await insight.trends.read(range), await readUsed()));
  });
  api.get("/overview", async (c) => c.json(await readOverview()));
  api.get("/failures", async (c) => c.json(await names.stories(await insight.turns.failures())));
  api.get("/turns", async (c) => c.json(await names.stories(await insight.turns.turns())));
  api.get("/turns/:turnId/trace", async (c) => {
    const trace = await inspector.readTrace(c.req.param("turnId"));
    return trace === undefined ? c.json({ error: "The record of this answer has expired." }, 404) : c.json(trace);
  });
  api.post("/turns/:turnId/messages", async (c) => {
    const turnId = c.req.param("turnId");
    const opened = await inspector.find(turnId);
    if (opened === undefined) return c.json({ error: "The messages of this answer have expired." }, 404);
    const { conversationId, reply } = opened;
    const by = access.nameOf(c);
    await note({ by, act: "opened the messages of a conversation", turnId, conversationId, reply });
    return c.json(await inspector.open(opened));
  });
  api.route("/doctor", createDoctorRoutes(options.examine));
  api.get("/settings", async (c) => c.json(await options.readSettings(names)));

  return { app: createApp(options, api), close: live.close };
}

function createApp({ admin, log }: AdminOptions, api: Hono): Hono {
  const app = new Hono();
  for (const path of ["/admin", "/admin/*"]) app.use(path, hardenHeaders, checkHost(admin.allowedHosts), checkOrigin);
  app.use("/admin/api/*", async (c, next) => {
    await next();
    c.header("Cache-Control", "no-store");
  });
  app.route("/admin/api", api);
  const folder = new URL("page/", import.meta.url);
  const paths = ["/admin", "/admin/", ...PAGES.map((page) => `/admin/${page}`)];
  app.route("/", createPageAssets({ folder, paths, at: "/admin/assets", vendor: VENDOR, trustedTypes: ["lit-html"] }));
  app.onError((err, c: Context) => {
    if (hasLeft(c)) return c.body(null, 400);
    log.warn({ err, path: c.req.path }, "a dashboard request failed");
    return c.json({ error: "The store is unavailable, or something went wrong; see the log." }, 503);
  });
  return app;
}

function isRange(name: string): name is RangeName {
  return Object.hasOwn(RANGES, name);
}
