import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { Hono } from "hono";
import { html } from "hono/html";
import type { Logger } from "pino";
import { createByteBudget } from "../concurrency/byte-budget.ts";
import { NEVER, runWithin } from "../concurrency/deadlines.ts";
import type { Metrics } from "../metrics/metrics.ts";
import { hasLeft } from "./bindings.ts";
import { createInsiders, type Insiders } from "./insiders.ts";
import { refuseOddRequests } from "./odd-requests.ts";

export interface HttpServerOptions {
  host: string;
  /** The port to listen on; 0 is any free port. */
  port: number;
  log: Logger;
  /** The checks that `/readyz` makes, by name. */
  health: Readonly<Record<string, HealthCheck>>;
  /** Further facts in the response of `/readyz`. */
  states?: Readonly<Record<string, () => string>>;
  metrics: Pick<Metrics, "render">;
  /** Gives access to the metrics and to the details of `/readyz`. Absent: only programs on this machine have access. */
  metricsToken?: string | undefined;
  /** Applications whose routes have full paths. The first match responds. They read bodies with `limitBody`. */
  mounts: readonly Hono[];
  /** Sentences for a browser at `/`, if no application has that path. */
  about?: readonly string[];
  /** The limit for the total size of all request bodies in use. */
  maxBodyBytes?: number;
  /** How long `close` waits for responses in progress, including streams. */
  closeTimeoutMs?: number;
}

export interface HttpServer {
  /** The address for programs on this machine, without a trailing slash. */
  url: string;
  /** Stops accepting connections and closes idle ones. Closes active ones after a limited time. */
  close(): Promise<void>;
}

/** Enough for the page's largest upload on each connection that a browser opens. */
const DEFAULT_MAX_BODY_BYTES = 128 * 1024 * 1024;
/** The server accepts at most this many connections. Each uses about ten kilobytes before its first request. */
const MAX_CONNECTIONS = 2_000;
const DEFAULT_CLOSE_TIMEOUT_MS = 5000;
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 120_000;
const KEEP_ALIVE_TIMEOUT_MS = 65_000;
const IDLE_SWEEP_MS = 100;

/** Starts the HTTP server. If it cannot listen, rejects with a sentence that says what to change. */
export async function startHttpServer(options: HttpServerOptions): Promise<HttpServer> {
  const app = createApp(options);
  const bodies = createByteBudget(options.maxBodyBytes ?? DEFAULT_MAX_BODY_BYTES);
  const answer = getRequestListener((request, bindings) => app.fetch(request, { ...bindings, bodies }), {
    overrideGlobalObjects: false,
  });
  const server = createServer(
    {
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      // Must exceed a proxy's timeout. Otherwise the proxy could send a request on a connection that is already closed.
      keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    },
    (incoming, outgoing) => void answer(incoming, outgoing),
  );
  server.maxConnections = MAX_CONNECTIONS;
  await listen(server, options);
  server.on("error", (error) => options.log.error({ err: error }, "the HTTP server failed"));
  let closed: Promise<void> | undefined;
  return {
    url: urlOf(server, options.host),
    close() {
      closed ??= close(server, options.closeTimeoutMs ?? DEFAULT_CLOSE_TIMEOUT_MS);
      return closed;
    },
  };
}

function createApp({ health, states, metrics, metricsToken, mounts, about = [], log }: HttpServerOptions): Hono {
  const app = new Hono();
  const insiders = createInsiders(metricsToken, log);
  app.use(refuseOddRequests);
  app.route("/", createHealthRoutes(health, insiders, states));
  app.route("/", createMetricsRoutes(metrics, insiders));
  for (const mount of mounts) app.route("/", mount);
  app.get("/", (context) => context.html(renderAbout(about), 200, { "content-security-policy": "default-src 'none'" }));
  app.notFound((context) => context.json({ error: "There is nothing at this address." }, 404));
  app.onError((error, context) => {
    // The rest of a relayed image's path is secret.
    const path = context.req.path.replace(/^\/relay\/.*/s, "/relay/…");
    if (hasLeft(context)) {
      log.debug({ method: context.req.method, path }, "a client disconnected before the response");
      return context.body(null, 400);
    }
    log.error({ err: error, method: context.req.method, path }, "a request failed");
    return context.json({ error: "Something went wrong here; the log says what." }, 500);
  });
  return app;
}

function renderAbout(sentences: readonly string[]) {
  return html`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Palaver</title>
<h1>Palaver is running</h1>
${sentences.map((sentence) => html`<p>${sentence}</p>`)}
</html>
`;
}

function listen(server: Server, { host, port }: HttpServerOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      reject(new Error(describeListenError(error, host, port), { cause: error }));
    });
    server.listen(port, host, () => {
      server.removeAllListeners("error");
      resolve();
    });
  });
}

function describeListenError({ code, message }: NodeJS.ErrnoException, host: string, port: number): string {
  switch (code) {
    case "EADDRINUSE":
      return `Port ${port} on ${host} is in use by another program: stop that program, or set PORT to a free port.`;
    case "EACCES":
      return `Port ${port} on ${host} cannot be opened by this user: set PORT to a number above 1023.`;
    case "EADDRNOTAVAIL":
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return `HOST ${host} is not an address of this machine: set HOST to one, or to 127.0.0.1.`;
    case undefined:
    default:
      return `Cannot listen on ${host}, port ${port}: ${message}`;
  }
}

function urlOf(server: Server, host: string): string {
  const { port, family } = server.address() as AddressInfo;
  if (host === "0.0.0.0" || host === "::") return `http://${family === "IPv6" ? "[::1]" : "127.0.0.1"}:${port}`;
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

/** Closes connections repeatedly, because Node closes only those that are idle at that moment. */
async function close(server: Server, timeoutMs: number): Promise<void> {
  const sweep = setInterval(() => server.closeIdleConnections(), IDLE_SWEEP_MS);
  const cut = setTimeout(() => server.closeAllConnections(), timeoutMs);
  try {
    await new Promise<void>((resolve) => server.close(() => resolve()));
  } finally {
    clearInterval(sweep);
    clearTimeout(cut);
  }
}

/** Resolves to true if the service works. A rejection or a hang counts as false. */
type HealthCheck = () => Promise<boolean>;

const CHECK_TIMEOUT_MS = 2000;

/**
 * `GET /healthz`: the process is alive. `GET /readyz`: 200 if every check passes, otherwise 503. Insiders see each
 * check and the `states`, which do not affect the status. Others see only the result.
 */
export function createHealthRoutes(
  checks: Readonly<Record<string, HealthCheck>>,
  insiders: Insiders,
  states: Readonly<Record<string, () => string>> = {},
): Hono {
  return new Hono()
    .get("/healthz", (context) => context.json({ status: "ok" }))
    .get("/readyz", async (context) => {
      const results = await Promise.all(
        Object.entries(checks).map(async ([name, check]) => [name, await runCheck(check)] as const),
      );
      const told = Object.fromEntries(Object.entries(states).map(([name, tell]) => [name, tell()]));
      const ready = results.every(([, result]) => result === "ok");
      const status = ready ? "ready" : "not ready";
      const isInsider = insiders.admit(context) === true;
      const body = isInsider ? { status, checks: Object.fromEntries(results), ...told } : { status };
      return context.json(body, ready ? 200 : 503);
    });
}

async function runCheck(check: HealthCheck): Promise<"ok" | "failed" | "timed out"> {
  try {
    return (await runWithin(CHECK_TIMEOUT_MS, check, NEVER)) ? "ok" : "failed";
  } catch (error) {
    return error instanceof DOMException && error.name === "TimeoutError" ? "timed out" : "failed";
  }
}

function createMetricsRoutes(metrics: Pick<Metrics, "render">, insiders: Insiders): Hono {
  return new Hono().get("/metrics", async (context) => {
    const admitted = insiders.admit(context);
    if (admitted !== true) return admitted;
    const { contentType, body } = await metrics.render();
    return context.body(body, 200, { "content-type": contentType });
  });
}
