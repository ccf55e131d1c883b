import { type Context, Hono } from "hono";
import type { Logger } from "pino";
import type { AdminConfig } from "../config/config.ts";
import { hasLeft } from "../http/bindings.ts";
import { checkHost, checkOrigin, hardenHeaders } from "../http/page-access.ts";
import { createPageAssets } from "../http/page-assets.ts";
import type { Insight } from "../insight/insight.ts";
import { RANGES, type RangeName } from "../insight/trends.ts";
import type { ReplyAddress } from "../port/events.ts";
import type { Stores } from "../store/keyv.ts";
import type { Usage } from "../usage/usage.ts";
import { createAccess } from "./access.ts";
import { createDoctorRoutes, type Examine } from "./doctor.ts";
import { createInspector, type InspectorDeps } from "./inspector.ts";
import { createLive } from "./live.ts";
import type { SettingsPart } from "./page/wire.ts";
import { createSessions } from "./sessions.ts";
import { createStopTurn, type StopDeps, type StopResult } from "./stop.ts";
import { createReadUsed, toWireTrends } from "./subjects.ts";

/** The pages of the dashboard, as their paths are called. */
const PAGES = ["now", "trends", "failures", "conversations", "doctor", "settings"];
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

/** Names the result of a Stop for the audit log. */
const STOPS = {
  stopped: "stopped an answer",
  ended: "asked to stop an answer, which ended by itself",
  running: "asked to stop an answer, which still ran seconds later",
} as const;

/** An administrator's act, kept for later questions. */
export interface AdminAct {
  by: string;
  act: "opened the messages of a conversation" | (typeof STOPS)[StopResult["result"]];
  turnId: string;
  conversationId: string;
  reply: ReplyAddress;
}

export interface AdminOptions extends InspectorDeps, StopDeps {
  admin: AdminConfig;
  /** Signs what the page sends with every change. */
  csrfKey: string;
  /** Browsers reach this service over TLS. */
  isSecure: boolean;
  stores: Pick<Stores, "open" | "inTurn">;
  insight: Insight;
  usage: Pick<Usage, "readTable">;
  examine: Examine;
  readSettings(): Promise<SettingsPart[]>;
  /** Records an act. If it rejects, messages are not opened; a stop has happened already. */
  note(act: AdminAct): Promise<void>;
  log: Logger;
}

export interface Admin {
  /** Serves `/admin` and everything below it; to be mounted at the root of the process's HTTP server. */
  app: Hono;
  close(): void;
}

/** The dashboard: what all processes of the service do, and have done. It changes nothing but what Stop ends. */
export function createAdmin(options: AdminOptions): Admin {
  const { admin, stores, insight, isSecure, csrfKey, log, note } = options;
  const sessions = createSessions({
    keyv: stores.open("admin"),
    inTurn: stores.inTurn,
    password: admin.password ?? "",
    now: Date.now,
  });
  const access = createAccess({ admin, sessions, csrfKey, isSecure, log });
  const live = createLive(insight.processes, Date.now);
  const stopTurn = createStopTurn(options);
  const inspector = createInspector(options);
  const readUsed = createReadUsed(options.usage, Date.now);
  const api = new Hono();
  api.route("/", access.routes);
  api.use("*", access.check);

  api.get("/live", (c) => {
    const stream = live.open(() => access.isSignedIn(c));
    if (stream === undefined) return c.json({ error: "Too many look at this already. Close another tab." }, 503);
    return c.body(stream, 200, {
      "Content-Type": "text/event-stream; charset=utf-8",
      // Proxies that collect an answer before passing it on would hold the stream back.
      "X-Accel-Buffering": "no",
    });
  });
  api.post("/turns/:turnId/stop", async (c) => {
    const by = access.nameOf(c);
    const turnId = c.req.param("turnId");
    log.info({ by, turnId }, "an administrator presses Stop");
    const stop = await stopTurn(turnId);
    if (stop === undefined) return c.json({ error: "This answer has ended already." }, 404);
    const { conversationId, reply } = stop.story;
    // Afterwards, since the note says what became of it.
    await note({ by, act: STOPS[stop.result], turnId, conversationId, reply });
    return c.json({});
  });
  api.get("/trends/:range", async (c) => {
    const range = c.req.param("range");
    if (!isRange(range)) return c.json({ error: "There is no such range." }, 404);
    const read = [insight.trends.read(range), readUsed(), insight.turns.turns()] as const;
    return c.json(toWireTrends(...(await Promise.all(read))));
  });
  api.get("/failures", async (c) => c.json(await insight.turns.failures()));
  api.get("/turns", async (c) => c.json(await insight.turns.turns()));
  api.get("/turns/:turnId/sight", async (c) => {
    const sight = await inspector.readSight(c.req.param("turnId"));
    return sight === undefined ? c.json({ error: "What it was given is not kept any more." }, 404) : c.json(sight);
  });
  api.post("/turns/:turnId/messages", async (c) => {
    const turnId = c.req.param("turnId");
    const opened = await inspector.find(turnId);
    if (opened === undefined) return c.json({ error: "What was said is not kept any more." }, 404);
    const { conversationId, reply } = opened;
    const by = access.nameOf(c);
    await note({ by, act: "opened the messages of a conversation", turnId, conversationId, reply });
    return c.json(await inspector.open(opened));
  });
  api.route("/doctor", createDoctorRoutes(options.examine));
  api.get("/settings", async (c) => c.json(await options.readSettings()));

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
    log.warn({ err, path: c.req.path }, "a request of the dashboard failed");
    return c.json({ error: "The store does not answer just now, or something went wrong; the log says what." }, 503);
  });
  return app;
}

function isRange(name: string): name is RangeName {
  return Object.hasOwn(RANGES, name);
}
